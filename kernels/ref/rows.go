package ref

import (
	"math"

	"github.com/moerack/moerack/kernels"
)

// RMSNorm sets out[t] = x[t] / sqrt(mean(x[t]²) + eps) · w (Zhang and Sennrich 2019). out may be x. // out, x (T, C), w (C)
func RMSNorm(out, x kernels.Mat, w []float32, eps float32) {
	for t := range x.Rows {
		row, to := x.Row(t), out.Row(t)
		scale := float32(1 / math.Sqrt(float64(dotF32(row, row))/float64(len(row))+float64(eps)))
		for i, v := range row {
			to[i] = v * scale * w[i]
		}
	}
}

// AddRMSNorm adds y to x and norms the sum. out may be y. // out, x, y (T, C), w (C)
func AddRMSNorm(out, x, y kernels.Mat, w []float32, eps float32) {
	Add(x, x, y)
	RMSNorm(out, x, w, eps)
}

// Rope rotates interleaved pairs: (a, b) becomes (a·cos − b·sin, b·cos + a·sin) (Su et al. 2021). // table (positions, Dim)
func Rope(out, x kernels.Mat, positions []int32, table kernels.Mat, r kernels.Rope) {
	for t, p := range positions {
		angles := table.Row(int(p))
		for h := range r.Heads {
			from := x.Data[t*x.Stride+h*r.InStride+r.InOffset:][:r.Dim]
			to := out.Data[t*out.Stride+h*r.OutStride+r.OutOffset:][:r.Dim]
			for i := 0; i < r.Dim; i += 2 {
				a, b, cos, sin := from[i], from[i+1], angles[i], angles[i+1]
				to[i], to[i+1] = float32(a*cos)-float32(b*sin), float32(b*cos)+float32(a*sin)
			}
		}
	}
}

// Combine sets out[t] = ((w₀·y₀ + w₁·y₁) + … ) + shared[t] in this order, y_k = rows[index[t][k]], without the terms of index −1;
// zeros if nothing is left. out may be shared. // out (T, H), rows (M, H), index, weights (T, K), shared (T, H) or without data
func Combine(out, rows kernels.Mat, index kernels.Ints, weights, shared kernels.Mat) {
	for t := range out.Rows {
		to, ix, ws := out.Row(t), index.Row(t), weights.Row(t)
		for i := range to {
			var sum float32
			first := true // the first term is the sum so far, not added to 0: −0 stays −0
			for k, r := range ix {
				if r < 0 {
					continue
				}
				v := float32(ws[k] * rows.Data[int(r)*rows.Stride+i])
				if first {
					sum, first = v, false
				} else {
					sum += v
				}
			}
			switch {
			case shared.Data == nil:
			case first:
				sum = shared.Data[t*shared.Stride+i]
			default:
				sum += shared.Data[t*shared.Stride+i]
			}
			to[i] = sum
		}
	}
}

// Add sets out = a + b. out may be a or b. // out, a, b (T, C)
func Add(out, a, b kernels.Mat) {
	for t := range out.Rows {
		to, x, y := out.Row(t), a.Row(t), b.Row(t)
		for i := range to {
			to[i] = x[i] + y[i]
		}
	}
}
