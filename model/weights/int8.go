package weights

import "math"

// scaleSuffix is what the name of an I8 matrix has more to be that of its scales.
const scaleSuffix = "_scale"

// mostInt8 is the largest element of a quantized row, so that the smallest is its negative.
const mostInt8 = 127

// QuantizeInt8 quantizes one row symmetrically: scale = max|row| / 127, q[i] = row[i] · (127 / max|row|) rounded half to even, all in
// float32, so that |row[i] − q[i]·scale| ≤ scale/2 but for rounding. q holds the two's complement. A row of numbers below 2⁻¹⁰⁰ gets
// scale 0 and zeros. One that holds a NaN or an infinity gets scale NaN and zeros: what is computed with it shows it. // q, row (in)
func QuantizeInt8(q []byte, row []float32) (scale float32) {
	var most uint32 // bits of the largest magnitude; those of NaN are above all others
	for _, v := range row {
		most = max(most, math.Float32bits(v)&^signBit)
	}
	q = q[:len(row)]
	if most >= infinity {
		clear(q)
		return float32(math.NaN())
	}
	if most < leastInt8 {
		clear(q)
		return 0
	}
	inverse := mostInt8 / math.Float32frombits(most)
	for i, v := range row {
		// Added to 1.5·2²³ a number of this size is rounded to a whole one, half to even, and stands in the low bits.
		q[i] = byte(math.Float32bits(float32(v*inverse) + 0x1.8p23))
	}
	return math.Float32frombits(most) / mostInt8
}

const (
	signBit  = 1 << 31
	infinity = 0x7f800000
	// leastInt8 has the bits of 2⁻¹⁰⁰: 127 over less may be infinite.
	leastInt8 = (127 - 100) << 23
)

// toBF16 rounds to the nearest BF16, half to even; NaN stays NaN.
func toBF16(v float32) uint16 {
	b := math.Float32bits(v)
	if b&^signBit > infinity {
		return uint16(b>>16) | 0x40 // quiet, and not an infinity
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
