package cpu

import (
	"math"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

// Embed looks rows up.
func (s *stream) Embed(out hal.Tensor, table hal.Weight, ids hal.Tensor, first int) {
	const op = "Embed"
	if first < 0 {
		s.fail(op, "first = %d, want 0 or more", first)
	}
	w := s.weight(0, op, "table", table, -1, out.Cols)
	o := s.mat(op, "out", out, ids.Cols, out.Cols)
	ix := s.vector(op, "ids", ids, ids.Cols, 0, math.MaxInt32)
	s.refuseInt8(op, "table", w)
	if s.err == nil {
		s.dev.table.Embed(o, w, ix, first)
	}
}

// RMSNorm normalises rows.
func (s *stream) RMSNorm(out, x, weight hal.Tensor, eps float32) {
	const op = "RMSNorm"
	o, a := s.mat(op, "out", out, x.Rows, x.Cols), s.mat(op, "x", x, x.Rows, x.Cols)
	w := s.mat(op, "weight", weight, 1, x.Cols)
	if s.err == nil {
		s.rmsNorm(op, o, a, w.Row(0), eps)
	}
}

// AddRMSNorm adds rows and normalises the sums.
func (s *stream) AddRMSNorm(out, x, y, weight hal.Tensor, eps float32) {
	const op = "AddRMSNorm"
	o, a := s.mat(op, "out", out, x.Rows, x.Cols), s.mat(op, "x", x, x.Rows, x.Cols)
	b, w := s.mat(op, "y", y, x.Rows, x.Cols), s.mat(op, "weight", weight, 1, x.Cols)
	if s.err == nil {
		s.addRMSNorm(op, o, a, b, w.Row(0), eps)
	}
}

// MatMul multiplies rows by a weight.
func (s *stream) MatMul(out, x hal.Tensor, weight hal.Weight) {
	const op = "MatMul"
	w := s.weight(0, op, "w", weight, out.Cols, x.Cols)
	o, a := s.mat(op, "out", out, x.Rows, out.Cols), s.mat(op, "x", x, x.Rows, x.Cols)
	if s.err == nil {
		s.product(o, a, s.quantizedFor(w, a), w)
		s.products(op)
	}
}

// HeadMatMul multiplies the heads of rows by slices of a weight.
func (s *stream) HeadMatMul(out, x hal.Tensor, weight hal.Weight, h hal.HeadMatMul) {
	const op = "HeadMatMul"
	w := s.weight(0, op, "w", weight, h.Heads*h.Rows, -1)
	in, to := w.In, h.To-h.From
	if h.Transposed {
		in, to = to, in
	}
	if s.err == nil && (h.Heads < 1 || h.From < 0 || h.From >= h.To || h.To > h.Rows || h.InStride < in || h.OutStride < to) {
		s.fail(op, "%+v does not fit weight %s", h, weight.Data)
	}
	if h.Transposed {
		s.refuseInt8(op, "w, transposed", w)
	}
	o, a := s.mat(op, "out", out, x.Rows, h.Heads*h.OutStride), s.mat(op, "x", x, x.Rows, h.Heads*h.InStride)
	if s.err == nil {
		s.headMatMul(op, o, a, w, kernels.HeadMatMul(h))
	}
}

// Rope rotates heads.
func (s *stream) Rope(out, x, positions, table hal.Tensor, r hal.Rope) {
	const op = "Rope"
	if r.Heads < 1 || r.Dim < 2 || r.Dim%2 != 0 || r.InOffset < 0 || r.InOffset+r.Dim > r.InStride || r.OutOffset < 0 || r.OutOffset+r.Dim > r.OutStride {
		s.fail(op, "%+v: an even number of elements must lie inside each head", r)
	}
	o, a := s.mat(op, "out", out, x.Rows, r.Heads*r.OutStride), s.mat(op, "x", x, x.Rows, r.Heads*r.InStride)
	angles := s.mat(op, "table", table, table.Rows, r.Dim)
	pos := s.vector(op, "positions", positions, x.Rows, 0, table.Rows-1)
	if s.err == nil {
		s.rotate(op, o, a, pos, angles, kernels.Rope(r))
	}
}

// StoreKV writes rows into the cache.
func (s *stream) StoreKV(cache, rows, slots hal.Tensor) {
	const op = "StoreKV"
	c, r := s.mat(op, "cache", cache, cache.Rows, rows.Cols), s.mat(op, "rows", rows, rows.Rows, rows.Cols)
	ix := s.vector(op, "slots", slots, rows.Rows, math.MinInt32, cache.Rows-1)
	if s.err != nil {
		return
	}
	for t, slot := range ix {
		if slot >= 0 {
			copy(c.Row(int(slot)), r.Row(t))
		}
	}
}

// MLAAttention attends over the paged cache.
func (s *stream) MLAAttention(out, q, cache, tables, seqs, positions hal.Tensor, a hal.MLAAttention) {
	const op = "MLAAttention"
	if a.Heads < 1 || a.Latent < 1 || a.Rope < 0 || a.BlockSize < 1 {
		s.fail(op, "%+v: sizes must be positive", a)
	}
	o := s.mat(op, "out", out, q.Rows, a.Heads*a.Latent)
	qm := s.mat(op, "q", q, q.Rows, a.Heads*(a.Latent+a.Rope))
	c := s.mat(op, "cache", cache, cache.Rows, a.Latent+a.Rope)
	tb := s.ints(op, "tables", tables, tables.Rows, tables.Cols)
	sq := s.vector(op, "seqs", seqs, q.Rows, math.MinInt32, tables.Rows-1)
	ps := s.vector(op, "positions", positions, q.Rows, 0, tables.Cols*a.BlockSize-1)
	if s.err != nil {
		return
	}
	if s.checkTables(op, tb, cache.Rows, a.BlockSize); s.err == nil {
		s.attention(op, o, qm, c, tb, sq, ps, kernels.MLAAttention(a))
	}
}

// checkTables refuses blocks that a cache of so many rows does not have.
func (s *stream) checkTables(op string, tables kernels.Ints, slots, blockSize int) {
	for r := range tables.Rows {
		for i, b := range tables.Row(r) {
			if b < 0 || (int(b)+1)*blockSize > slots {
				s.fail(op, "tables[%d][%d] = block %d, the cache has %d", r, i, b, slots/blockSize)
				return
			}
		}
	}
}

// Route chooses experts.
func (s *stream) Route(ids, weights, logits, bias, seqs hal.Tensor, r hal.Router) {
	const op = "Route"
	k, experts := ids.Cols, logits.Cols
	if err := r.Validate(experts, k); err != nil {
		s.fail(op, "%v", err)
	}
	ix := s.ints(op, "ids", ids, logits.Rows, k)
	w, l := s.mat(op, "weights", weights, logits.Rows, k), s.mat(op, "logits", logits, logits.Rows, experts)
	var b []float32
	if !bias.IsZero() {
		if m := s.mat(op, "bias", bias, 1, experts); s.err == nil {
			b = m.Row(0)
		}
	}
	var sq []int32
	if !seqs.IsZero() {
		sq = s.vector(op, "seqs", seqs, logits.Rows, math.MinInt32, math.MaxInt32)
	}
	if s.err == nil {
		kr := kernels.Router{Sigmoid: r.Scoring == hal.Sigmoid, Method: kernels.TopKMethod(r.Method), Groups: max(r.Groups, 1), TopGroups: r.TopGroups, Normalize: r.Normalize, Scale: r.Scale}
		s.dev.table.Route(ix, w, l, b, sq, kr, s.floats(kernels.RouterScratch(experts, kr.Groups)))
	}
}

// SwiGLU is the gated unit of an MLP.
func (s *stream) SwiGLU(out, x hal.Tensor, gate, up hal.Weight) {
	const op = "SwiGLU"
	g, u := s.weight(0, op, "gate", gate, out.Cols, x.Cols), s.weight(1, op, "up", up, out.Cols, x.Cols)
	o, a := s.mat(op, "out", out, x.Rows, out.Cols), s.mat(op, "x", x, x.Rows, x.Cols)
	s.checkPair(op, g, u)
	if s.err == nil {
		s.gatedProduct(o, a, s.quantizedFor(g, a), g, u)
		s.products(op)
	}
}

// Add adds rows.
func (s *stream) Add(out, a, b hal.Tensor) {
	const op = "Add"
	o, x, y := s.mat(op, "out", out, a.Rows, a.Cols), s.mat(op, "a", a, a.Rows, a.Cols), s.mat(op, "b", b, a.Rows, a.Cols)
	if s.err == nil {
		s.add(op, o, x, y)
	}
}

// GatherRows copies chosen rows.
func (s *stream) GatherRows(out, x, index hal.Tensor) {
	const op = "GatherRows"
	o, a := s.mat(op, "out", out, index.Cols, x.Cols), s.mat(op, "x", x, x.Rows, x.Cols)
	ix := s.vector(op, "index", index, index.Cols, 0, x.Rows-1)
	for i, t := range ix {
		copy(o.Row(i), a.Row(int(t)))
	}
}

// MarkNonFinite notes rows that hold NaN or infinities.
func (s *stream) MarkNonFinite(first, x hal.Tensor, tag int32) {
	const op = "MarkNonFinite"
	f := s.ints(op, "first", first, 1, x.Rows)
	a := s.mat(op, "x", x, x.Rows, x.Cols)
	if s.err != nil {
		return
	}
	marks := f.Row(0)
	for t := range a.Rows {
		if marks[t] < 0 && !s.dev.table.Finite(a.Row(t)) {
			marks[t] = tag
		}
	}
}
