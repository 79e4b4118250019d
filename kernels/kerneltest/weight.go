package kerneltest

import (
	"math"

	"github.com/moerack/moerack/kernels"
)

var formats = map[string]kernels.Format{"F32": kernels.F32, "BF16": kernels.BF16, "F16": kernels.F16, "F8_E4M3": kernels.F8E4M3}

// weight returns random rows in a format, cut out of a larger matrix at an odd place: what lies beside them, and the scales of blocks
// that they do not touch, are NaN.
func (g gen) weight(f kernels.Format, out, in int) *kernels.Weight {
	const left, right = 3, 2
	w := &kernels.Weight{Format: f, Out: out, In: in, Stride: left + in + right}
	n := (out-1)*w.Stride + in
	mine := func(k int) bool { return k%w.Stride < in }
	switch f {
	case kernels.F32:
		for k := range n {
			w.F32 = append(w.F32, pick(mine(k), g.value(), float32(math.NaN())))
		}
	case kernels.BF16:
		for k := range n {
			w.U16 = append(w.U16, pick(mine(k), uint16(math.Float32bits(g.value())>>16), 0x7fc0))
		}
	case kernels.F16:
		for k := range n {
			w.U16 = append(w.U16, pick(mine(k), g.f16(), 0x7e00))
		}
	case kernels.F8E4M3:
		for k := range n {
			w.U8 = append(w.U8, pick(mine(k), g.f8(), 0x7f))
		}
		g.scales(w)
	case kernels.I8:
		return g.weight8(out, in)
	}
	return w
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// f16 returns any sign and fraction with an exponent around 1, subnormals included.
func (g gen) f16() uint16 { return uint16(g.IntN(2)<<15 | g.IntN(18)<<10 | g.IntN(1024)) }

// f8 returns a code below NaN.
func (g gen) f8() uint8 { return uint8(g.IntN(2)<<7 | g.IntN(0x70)) }

// scales gives an FP8 weight a scale per block, as a slice that begins somewhere in the grid of a larger matrix. Blocks are
// smaller than published, so that small sizes have edges; one side is not a multiple of four.
func (g gen) scales(w *kernels.Weight) {
	w.BlockRows, w.BlockCols = 16, 8-g.IntN(2)
	w.RowStart, w.ColStart = g.IntN(3*w.BlockRows), g.IntN(3*w.BlockCols)
	rows := (w.RowStart+w.Out-1)/w.BlockRows + 1 + g.IntN(2)
	w.ScaleCols = (w.ColStart+w.In-1)/w.BlockCols + 1 + g.IntN(2)
	for b := range rows * w.ScaleCols {
		r, c := b/w.ScaleCols, b%w.ScaleCols
		touched := r >= w.RowStart/w.BlockRows && r <= (w.RowStart+w.Out-1)/w.BlockRows &&
			c >= w.ColStart/w.BlockCols && c <= (w.ColStart+w.In-1)/w.BlockCols
		w.Scale = append(w.Scale, pick(touched, float32(math.Exp(g.NormFloat64()))/64, float32(math.NaN())))
	}
}

// cut returns rows [r0, r1) and columns [c0, c1) of w.
func cut(w *kernels.Weight, r0, r1, c0, c1 int) *kernels.Weight {
	s := *w
	s.Out, s.In, s.RowStart, s.ColStart = r1-r0, c1-c0, w.RowStart+r0, w.ColStart+c0
	from, to := r0*w.Stride+c0, (r1-1)*w.Stride+c1
	switch w.Format {
	case kernels.F32:
		s.F32 = w.F32[from:to:to]
	case kernels.BF16, kernels.F16:
		s.U16 = w.U16[from:to:to]
	case kernels.F8E4M3:
		s.U8 = w.U8[from:to:to]
	case kernels.I8:
		s.I8 = w.I8[from:to:to]
	}
	return &s
}

// element returns the real value of w[o][i] by the formats' definitions, in float64.
func element(w *kernels.Weight, o, i int) float64 {
	k := o*w.Stride + i
	switch w.Format {
	case kernels.F32:
		return float64(w.F32[k])
	case kernels.BF16:
		return float64(math.Float32frombits(uint32(w.U16[k]) << 16))
	case kernels.F16:
		return minifloat(int(w.U16[k]), 5, 10)
	default:
		scale := float32(1)
		if w.Scale != nil {
			scale = w.Scale[(w.RowStart+o)/w.BlockRows*w.ScaleCols+(w.ColStart+i)/w.BlockCols]
		}
		return float64(float32(minifloat(int(w.U8[k]), 4, 3)) * scale) // the published rule rounds to float32
	}
}

// minifloat is sign · 2^(e−bias) · 1.f, subnormals included, for finite codes.
func minifloat(code, expBits, fracBits int) float64 {
	bias := 1<<(expBits-1) - 1
	frac := float64(code & (1<<fracBits - 1))
	e := code >> fracBits & (1<<expBits - 1)
	v := math.Ldexp(1+math.Ldexp(frac, -fracBits), e-bias)
	if e == 0 {
		v = math.Ldexp(frac, 1-bias-fracBits)
	}
	if code>>(expBits+fracBits)&1 == 1 {
		v = -v
	}
	return v
}
