package ref

import "math"

// fromBF16 returns the value of a bfloat16: the upper half of a binary32.
func fromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// fromF16 returns the value of an IEEE 754 binary16.
func fromF16(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h) & 0x3ff
	switch exp {
	case 0: // zero or subnormal: frac · 2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	default:
		return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
	}
}

// f8e4m3 holds the value of each F8_E4M3 code (OCP 8-bit floating point, revision 1.0, section 5.2): bias 7, no infinities,
// S.1111.111 is NaN.
var f8e4m3 = func() (t [256]float32) {
	for c := range t {
		sign := float32(1)
		if c&0x80 != 0 {
			sign = -1
		}
		exp, frac := c>>3&0xf, float32(c&7)
		switch {
		case c&0x7f == 0x7f:
			t[c] = float32(math.NaN())
		case exp == 0: // subnormal: frac/8 · 2⁻⁶
			t[c] = float32(math.Copysign(float64(frac*0x1p-9), float64(sign)))
		default:
			t[c] = sign * float32(math.Ldexp(float64(1+frac/8), exp-7))
		}
	}
	return t
}()

// exp is e^x rounded once from float64.
func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

// silu is x·sigmoid(x).
func silu(x float32) float32 { return x / (1 + exp(-x)) }

// Finite reports whether x holds no NaN and no infinity.
func Finite(x []float32) bool {
	for _, v := range x {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}
