package ref

import (
	"math"

	"github.com/moerack/moerack/kernels"
)

// Quantize rounds rows to 8-bit integers with one scale each, symmetric about zero. // out, x (T, I)
func Quantize(out kernels.Rows8, x kernels.Mat) {
	for t := range x.Rows {
		row, to := x.Row(t), out.Row(t)
		var top uint32 // the largest absolute value, as bits: they order as the values do, infinity and NaN above all
		for _, v := range row {
			top = max(top, math.Float32bits(v)&0x7fffffff)
		}
		amax := math.Float32frombits(top)
		switch {
		case top >= 0x7f800000:
			clear(to)
			out.Scale[t] = float32(math.NaN())
		case amax < 0x1p-100: // 127/amax stays finite
			clear(to)
			out.Scale[t] = 0
		default:
			inverse := 127 / amax
			for i, v := range row {
				to[i] = int8(math.RoundToEven(float64(v * inverse)))
			}
			out.Scale[t] = amax / 127
		}
	}
}

// dot8 is the exact sum of products. // w, x (In)
func dot8(w, x []int8) int32 {
	w = w[:len(x)]
	var sum int32
	for i, v := range x {
		sum += int32(v) * int32(w[i])
	}
	return sum
}

// scaled8 is element (t, o) of x · wᵀ.
func scaled8(x kernels.Rows8, t int, w *kernels.Weight, o int) float32 {
	return float32(dot8(w.I8[o*w.Stride:][:w.In], x.Row(t))) * (x.Scale[t] * w.Scale[w.RowStart+o])
}

// MatMul8 sets out = x · wᵀ. // out (T, O), x (T, I), w (O, I)
func MatMul8(out kernels.Mat, x kernels.Rows8, w *kernels.Weight) {
	for o := range w.Out {
		for t := range x.Rows {
			out.Data[t*out.Stride+o] = scaled8(x, t, w, o)
		}
	}
}

// SwiGLU8 sets out = silu(x · gateᵀ) · (x · upᵀ). // out (T, I), x (T, H), gate, up (I, H)
func SwiGLU8(out kernels.Mat, x kernels.Rows8, gate, up *kernels.Weight) {
	for o := range gate.Out {
		for t := range x.Rows {
			out.Data[t*out.Stride+o] = silu(scaled8(x, t, gate, o)) * scaled8(x, t, up, o)
		}
	}
}
