package cpu

import (
	"slices"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

// Ops with I8 weights: the rows are quantized, each with a scale of its own, and the dot products are of int8. So a row's bits still
// depend on that row alone.

// mostInt8Inputs is the width from which a sum of int8 products could pass 32 bits.
const mostInt8Inputs = 133_000

// checkInt8 refuses an I8 weight without a scale for each row.
func (s *stream) checkInt8(op, name string, w hal.Weight) {
	switch {
	case s.err != nil:
	case w.Scale.IsZero() || w.BlockRows != 1 || w.Scale.Cols != 1 || w.Scale.Rows > 1 && w.Scale.Stride != 1:
		s.fail(op, "%s: %s needs one scale for each row, has %s of %d×%d blocks", name, w.Data, w.Scale, w.BlockRows, w.BlockCols)
	case w.Data.Cols >= mostInt8Inputs:
		s.fail(op, "%s: %s: a sum of so many products of int8 may pass 32 bits: at most %d", name, w.Data, mostInt8Inputs-1)
	}
}

// refuseInt8 refuses an I8 weight where its rows are not summed over.
func (s *stream) refuseInt8(op, name string, w *kernels.Weight) {
	if s.err == nil && w.Format == kernels.I8 {
		s.fail(op, "%s: I8 serves only dot products with its rows", name)
	}
}

// checkPair refuses a gate and an up of which only one is I8.
func (s *stream) checkPair(op string, gate, up *kernels.Weight) {
	if s.err == nil && (gate.Format == kernels.I8) != (up.Format == kernels.I8) {
		s.fail(op, "gate and up: both must be I8, or none")
	}
}

// quantized returns rows in int8, in memory of the stream that the next call takes again. // a (T, I)
func (s *stream) quantized(a kernels.Mat) kernels.Rows8 {
	n := a.Rows * a.Cols
	s.int8s, s.steps = slices.Grow(s.int8s[:0], n)[:n], slices.Grow(s.steps[:0], a.Rows)[:a.Rows]
	q := kernels.Rows8{Data: s.int8s, Scale: s.steps, Rows: a.Rows, Cols: a.Cols, Stride: a.Cols}
	t := s.begin("Quantize", simple, 0, func(t *task, p *part, _ int) {
		t.s.dev.table.Quantize(t.rows8.Sub(p.from, p.to), t.x.Sub(p.from, p.to))
	})
	t.operands = operands{rows8: q, x: a}
	t.rows(a.Rows, 2*a.Cols)
	return q
}

// quantizedFor returns rows in int8 if w takes them so.
func (s *stream) quantizedFor(w *kernels.Weight, a kernels.Mat) kernels.Rows8 {
	if w.Format != kernels.I8 {
		return kernels.Rows8{}
	}
	return s.quantized(a)
}

// quantizedGroup returns rows [from, to) in int8 if w takes them so. whole is what the op has quantized, which the first call does for all
// groups.
func (s *stream) quantizedGroup(whole *kernels.Rows8, w *kernels.Weight, a kernels.Mat, counts hal.Tensor, from, to int) kernels.Rows8 {
	if w.Format != kernels.I8 {
		return kernels.Rows8{}
	}
	if whole.Rows == 0 {
		all := 0
		for _, n := range s.ints("counts", "counts", counts, 1, counts.Cols).Row(0) {
			all += max(int(n), 0)
		}
		*whole = s.quantized(a.Sub(0, min(all, a.Rows)))
	}
	if to > whole.Rows { // more than there are: the check of the next group says so
		return kernels.Rows8{}
	}
	return whole.Sub(from, to)
}

// headMatMul8 is headMatMul, not transposed, for I8: what a head has of a row is quantized by itself.
// // o (T, N·OutStride), a (T, N·InStride)
func (s *stream) headMatMul8(op string, o, a kernels.Mat, w *kernels.Weight, h kernels.HeadMatMul) {
	width, n := h.To-h.From, a.Rows*w.In
	s.int8s, s.steps = slices.Grow(s.int8s[:0], h.Heads*n)[:h.Heads*n], slices.Grow(s.steps[:0], h.Heads*a.Rows)[:h.Heads*a.Rows]
	for head := range h.Heads {
		q := kernels.Rows8{Data: s.int8s[head*n:], Scale: s.steps[head*a.Rows:][:a.Rows], Rows: a.Rows, Cols: w.In, Stride: w.In}
		x := a.Columns(head*h.InStride, head*h.InStride+w.In)
		s.dev.table.Quantize(q, x)
		rows := w.Sub(head*h.Rows+h.From, head*h.Rows+h.To)
		s.product(o.Columns(head*h.OutStride, head*h.OutStride+width), x, q, &rows)
	}
	s.products(op)
}
