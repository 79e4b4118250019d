package ref

import "github.com/moerack/moerack/kernels"

// Embed sets out[t] to the values of table row ids[t]−first, or to zeros if there is no such row. // out (T, H), table (V, H), ids (T)
func Embed(out kernels.Mat, table *kernels.Weight, ids []int32, first int) {
	for t, id := range ids {
		row, from := out.Row(t), int(id)-first
		if from < 0 || from >= table.Out {
			clear(row)
			continue
		}
		for i := range row {
			row[i] = at(table, from, i)
		}
	}
}

// MatMul sets out = x · wᵀ. A weight row meets all rows of x before the next one is read. // out (T, O), x (T, I), w (O, I)
func MatMul(out, x kernels.Mat, w *kernels.Weight) {
	for o := range w.Out {
		for t := range x.Rows {
			out.Data[t*out.Stride+o] = dot(w, o, x.Row(t))
		}
	}
}

// HeadMatMul multiplies each head by its slice of w's rows. // out (T, N·OutStride), x (T, N·InStride)
func HeadMatMul(out, x kernels.Mat, w *kernels.Weight, h kernels.HeadMatMul) {
	width := h.To - h.From
	for head := range h.Heads {
		first := head*h.Rows + h.From
		for t := range x.Rows {
			in := x.Data[t*x.Stride+head*h.InStride:]
			to := out.Data[t*out.Stride+head*h.OutStride:]
			if h.Transposed {
				to = to[:w.In]
				clear(to)
				for j := range width {
					axpy(to, in[j], w, first+j)
				}
				continue
			}
			for j := range width {
				to[j] = dot(w, first+j, in[:w.In])
			}
		}
	}
}

// SwiGLU sets out = silu(x · gateᵀ) · (x · upᵀ) (Shazeer 2020, GLU variants). // out (T, I), x (T, H), gate, up (I, H)
func SwiGLU(out, x kernels.Mat, gate, up *kernels.Weight) {
	for o := range gate.Out {
		for t := range x.Rows {
			row := x.Row(t)
			out.Data[t*out.Stride+o] = silu(dot(gate, o, row)) * dot(up, o, row)
		}
	}
}
