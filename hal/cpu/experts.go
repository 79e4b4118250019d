package cpu

import (
	"slices"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

// Dispatch sorts the (row, slot) pairs of some experts by expert with a counting sort, so that pairs of one expert keep their order.
func (s *stream) Dispatch(rows, index, counts, x, ids hal.Tensor, first int) {
	const op = "Dispatch"
	experts := counts.Cols
	if first < 0 {
		s.fail(op, "first = %d, want 0 or more", first)
	}
	to, from := s.mat(op, "rows", rows, rows.Rows, x.Cols), s.mat(op, "x", x, ids.Rows, x.Cols)
	ix, es := s.ints(op, "index", index, ids.Rows, ids.Cols), s.ints(op, "ids", ids, ids.Rows, ids.Cols)
	cs := s.ints(op, "counts", counts, 1, experts)
	if s.err != nil {
		return
	}
	count, total := cs.Row(0), 0
	clear(count)
	for t := range es.Rows {
		for k, id := range es.Row(t) {
			if id < -1 {
				s.fail(op, "ids[%d][%d] = %d, want an expert or -1 for none", t, k, id)
				return
			}
			if e := int(id) - first; e >= 0 && e < experts {
				count[e]++
				total++
			}
		}
	}
	if total > to.Rows {
		s.fail(op, "%d rows for experts %d … %d, room for %d", total, first, first+experts-1, to.Rows)
		return
	}
	s.starts = slices.Grow(s.starts[:0], experts)[:experts]
	next := int32(0)
	for e, n := range count {
		s.starts[e] = next
		next += n
	}
	for t := range es.Rows {
		for k, id := range es.Row(t) {
			e := int(id) - first
			if e < 0 || e >= experts {
				ix.Row(t)[k] = -1
				continue
			}
			i := s.starts[e]
			s.starts[e]++
			ix.Row(t)[k] = i
			copy(to.Row(int(i)), from.Row(t))
		}
	}
}

// groups calls f with the rows [from, to) of each expert that has any, after checking the counts.
func (s *stream) groups(op string, counts hal.Tensor, rows, experts int, f func(e, from, to int)) {
	cs := s.ints(op, "counts", counts, 1, experts)
	if s.err != nil {
		return
	}
	total := 0
	for e, n := range cs.Row(0) {
		if n < 0 || total+int(n) > rows {
			s.fail(op, "counts[%d] = %d after %d rows, have %d", e, n, total, rows)
			return
		}
		if n > 0 {
			f(e, total, total+int(n))
		}
		total += int(n)
		if s.err != nil {
			return
		}
	}
}

// GroupedSwiGLU runs the gated unit of each expert on its rows.
func (s *stream) GroupedSwiGLU(out, x, counts hal.Tensor, gate, up []hal.Weight) {
	const op = "GroupedSwiGLU"
	o, a := s.mat(op, "out", out, x.Rows, out.Cols), s.mat(op, "x", x, x.Rows, x.Cols)
	if len(gate) != len(up) {
		s.fail(op, "%d gates, %d ups", len(gate), len(up))
	}
	var a8 kernels.Rows8
	s.groups(op, counts, x.Rows, len(gate), func(e, from, to int) {
		g, u := s.weight(0, op, "gate", gate[e], out.Cols, x.Cols), s.weight(1, op, "up", up[e], out.Cols, x.Cols)
		s.checkPair(op, g, u)
		if s.err == nil {
			s.gatedProduct(o.Sub(from, to), a.Sub(from, to), s.quantizedGroup(&a8, g, a, counts, from, to), g, u)
		}
	})
	s.grouped(op)
}

// GroupedMatMul multiplies the rows of each expert by its weight.
func (s *stream) GroupedMatMul(out, x, counts hal.Tensor, w []hal.Weight) {
	const op = "GroupedMatMul"
	o, a := s.mat(op, "out", out, x.Rows, out.Cols), s.mat(op, "x", x, x.Rows, x.Cols)
	var a8 kernels.Rows8
	s.groups(op, counts, x.Rows, len(w), func(e, from, to int) {
		k := s.weight(0, op, "w", w[e], out.Cols, x.Cols)
		if s.err == nil {
			s.product(o.Sub(from, to), a.Sub(from, to), s.quantizedGroup(&a8, k, a, counts, from, to), k)
		}
	})
	s.grouped(op)
}

// grouped runs the products of all experts at once, so that threads share them, or drops them after an error.
func (s *stream) grouped(op string) {
	if s.err != nil {
		s.task.drop()
		return
	}
	s.products(op)
}

// Combine brings expert rows home in the order of the router.
func (s *stream) Combine(out, rows, index, weights, shared hal.Tensor) {
	const op = "Combine"
	o, r := s.mat(op, "out", out, index.Rows, rows.Cols), s.mat(op, "rows", rows, rows.Rows, rows.Cols)
	ix, w := s.ints(op, "index", index, index.Rows, index.Cols), s.mat(op, "weights", weights, index.Rows, index.Cols)
	var sh kernels.Mat
	if !shared.IsZero() {
		sh = s.mat(op, "shared", shared, index.Rows, rows.Cols)
	}
	if s.err != nil {
		return
	}
	for t := range ix.Rows {
		for k, i := range ix.Row(t) {
			if i < -1 || int(i) >= r.Rows {
				s.fail(op, "index[%d][%d] = %d, have %d rows; -1 leaves a term out", t, k, i, r.Rows)
				return
			}
		}
	}
	s.dev.table.Combine(o, r, ix, w, sh)
}
