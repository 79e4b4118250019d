package cpu

import "github.com/moerack/moerack/kernels"

// segment is a product of some rows with one weight, or the gated unit of two. // out (T, O), x (T, I), w, up (O, I)
type segment struct {
	out, x kernels.Mat
	x8     kernels.Rows8 // x, where the weights are int8
	w, up  kernels.Weight
	gated  bool
}

// each is the cost of an output.
func (g *segment) each() int {
	if g.gated {
		return 2 * g.x.Rows * g.w.In
	}
	return g.x.Rows * g.w.In
}

// outputsAlign is what parts of outputs are multiples of: kernels take them by 12, by 8 for single rows, or by 32.
const outputsAlign = 96

// products runs all segments that were added, cut by outputs, so that each weight row still meets all its rows at once.
func (s *stream) products(op string) {
	kind, cost := linear, 0
	for i := range s.task.segments {
		g := &s.task.segments[i]
		cost += g.each() * g.w.Out
		if g.w.Format == kernels.I8 {
			kind = linear8
		}
	}
	t := s.begin(op, kind, 0, productPart)
	for i := range t.segments {
		g := &t.segments[i]
		n := t.units(g.each(), cost, outputsAlign)
		for from := 0; from < g.w.Out; from += n {
			to := min(from+n, g.w.Out)
			t.parts = append(t.parts, part{segment: i, from: from, to: to, cost: (to - from) * g.each()})
		}
	}
	t.run()
	t.drop()
}

// drop forgets the segments.
func (t *task) drop() {
	clear(t.segments)
	t.segments = t.segments[:0]
}

func productPart(t *task, p *part, thread int) {
	g, table, slot := &t.segments[p.segment], &t.s.dev.table, &t.slots[thread]
	out := g.out.Columns(p.from, p.to)
	slot[0] = g.w.Sub(p.from, p.to)
	if g.gated {
		slot[1] = g.up.Sub(p.from, p.to)
	}
	switch int8s := g.w.Format == kernels.I8; {
	case int8s && g.gated:
		table.SwiGLU8(out, g.x8, &slot[0], &slot[1])
	case int8s:
		table.MatMul8(out, g.x8, &slot[0])
	case g.gated:
		table.SwiGLU(out, g.x, &slot[0], &slot[1])
	default:
		table.MatMul(out, g.x, &slot[0])
	}
}

// product adds a segment. // o (T, O), a (T, I), w (O, I)
func (s *stream) product(o, a kernels.Mat, a8 kernels.Rows8, w *kernels.Weight) {
	s.task.segments = append(s.task.segments, segment{out: o, x: a, x8: a8, w: *w})
}

// gatedProduct adds a segment. // o (T, O), a (T, I), gate, up (O, I)
func (s *stream) gatedProduct(o, a kernels.Mat, a8 kernels.Rows8, gate, up *kernels.Weight) {
	s.task.segments = append(s.task.segments, segment{out: o, x: a, x8: a8, w: *gate, up: *up, gated: true})
}

// headMatMul runs a product per head, cut by heads and, where these are few or long, by rows. // o (T, N·OutStride), a (T, N·InStride)
func (s *stream) headMatMul(op string, o, a kernels.Mat, w *kernels.Weight, h kernels.HeadMatMul) {
	if w.Format == kernels.I8 {
		s.headMatMul8(op, o, a, w, h)
		return
	}
	t := s.begin(op, heads, 0, headPart)
	t.operands = operands{out: o, x: a, w: *w, heads: h}
	each := (h.To - h.From) * w.In // of a row and a head
	t.cutHeads(a.Rows, h.Heads, each)
	t.run()
}

// cutHeads cuts heads of rows, of so many multiplications each.
func (t *task) cutHeads(rows, heads, each int) {
	n := t.units(each, rows*heads*each, 1) // rows of a head
	few := max(1, min(n/max(rows, 1), heads))
	for h := 0; h < heads; h += few {
		to := min(h+few, heads)
		for from := 0; from < rows; from += max(n, 1) {
			last := min(from+n, rows)
			if few > 1 {
				last = rows
			}
			t.parts = append(t.parts, part{from: from, to: last, head: h, headTo: to, cost: (last - from) * (to - h) * each})
			if last == rows {
				break
			}
		}
	}
}

func headPart(t *task, p *part, thread int) {
	h, w := t.heads, &t.slots[thread][0]
	*w = t.w.Sub(p.head*h.Rows, p.headTo*h.Rows)
	out, x := t.out.Sub(p.from, p.to), t.x.Sub(p.from, p.to)
	h.Heads = p.headTo - p.head
	out = out.Columns(p.head*h.OutStride, min(p.headTo*h.OutStride, out.Cols))
	x = x.Columns(p.head*h.InStride, min(p.headTo*h.InStride, x.Cols))
	t.s.dev.table.HeadMatMul(out, x, w, h)
}
