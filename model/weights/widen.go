package weights

import (
	"encoding/binary"
	"math"
)

// widen writes row i of a matrix, with its scales, as float32. // row (in)
func (l Linear) widen(row []float32, i int) {
	in := len(row)
	switch l.Weight.DType {
	case BF16:
		data := l.Weight.Data[2*i*in:][:2*in]
		for k := range row {
			row[k] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*k:])) << 16)
		}
	case F16:
		data := l.Weight.Data[2*i*in:][:2*in]
		for k := range row {
			row[k] = fromF16(binary.LittleEndian.Uint16(data[2*k:]))
		}
	case F32:
		data := l.Weight.Data[4*i*in:][:4*in]
		for k := range row {
			row[k] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*k:]))
		}
	case F8E4M3:
		data := l.Weight.Data[i*in:][:in]
		scales := l.Scale.Data[i/l.BlockRows*l.Scale.Shape[1]*4:]
		for from := 0; from < in; from += l.BlockCols {
			scale := math.Float32frombits(binary.LittleEndian.Uint32(scales[from/l.BlockCols*4:]))
			for k := from; k < min(from+l.BlockCols, in); k++ {
				row[k] = f8e4m3[data[k]] * scale
			}
		}
	default:
		panic("weights: no matrix of " + l.Weight.DType.String() + " is converted") // Checkpoint.converted refuses it
	}
}

// fromF16 gives the value of an IEEE 754 binary16.
func fromF16(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exp {
	case 0: // zero or subnormal: frac · 2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | infinity | frac<<13)
	default:
		return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
	}
}

// f8e4m3 holds the value of each F8_E4M3 code (OCP 8-bit floating point, revision 1.0, section 5.2): bias 7, no infinities,
// S.1111.111 is NaN.
var f8e4m3 = func() (t [256]float32) {
	for c := range t {
		exp, frac := c>>3&0xf, float64(c&7)
		v := math.Ldexp(1+frac/8, exp-7)
		switch {
		case c&0x7f == 0x7f:
			v = math.NaN()
		case exp == 0: // subnormal: frac/8 · 2⁻⁶
			v = frac * 0x1p-9
		}
		t[c] = float32(v)
		if c&0x80 != 0 {
			t[c] = float32(math.Copysign(v, -1))
		}
	}
	return t
}()
