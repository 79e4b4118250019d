package cpu

import "github.com/moerack/moerack/kernels"

// Ops that are cut by rows.

// attention is cut by rows and heads; a row costs as many multiplications as it has positions behind it.
// // o (T, N·Latent), q (T, N·(Latent+Rope)), seqs, positions (T)
func (s *stream) attention(op string, o, q, cache kernels.Mat, tables kernels.Ints, seqs, positions []int32, a kernels.MLAAttention) {
	t := s.begin(op, attention, kernels.AttentionTile, attentionPart)
	t.operands = operands{out: o, x: q, y: cache, tables: tables, seqs: seqs, positions: positions, attention: a}
	width := 2*a.Latent + a.Rope // of a head and a position
	cost := func(row int) int {
		if seqs[row] < 0 {
			return 0
		}
		return (int(positions[row]) + 1) * width
	}
	total := 0
	for row := range q.Rows {
		total += cost(row) * a.Heads
	}
	most := t.units(1, total, 1)
	for from := 0; from < q.Rows; {
		to, n := from, 0 // rows whose heads together make a part
		for to < q.Rows && (to == from || n < most) {
			n += cost(to) * a.Heads
			to++
		}
		few := a.Heads // of a single row, so many heads make one
		if to == from+1 && n > most {
			few = max(1, a.Heads*most/n)
		}
		for h := 0; h < a.Heads; h += few {
			last := min(h+few, a.Heads)
			t.parts = append(t.parts, part{from: from, to: to, head: h, headTo: last, cost: n / a.Heads * (last - h)})
		}
		from = to
	}
	t.run()
}

func attentionPart(t *task, p *part, thread int) {
	a, q := t.attention, t.attention.Latent+t.attention.Rope
	a.Heads = p.headTo - p.head
	out := t.out.Sub(p.from, p.to).Columns(p.head*a.Latent, p.headTo*a.Latent)
	x := t.x.Sub(p.from, p.to).Columns(p.head*q, p.headTo*q)
	t.s.dev.table.MLAAttention(out, x, t.y, t.tables, t.seqs[p.from:p.to], t.positions[p.from:p.to], a, t.scratch[thread*t.each:][:t.each])
}

// rmsNorm is RMSNorm. // o, a (T, C)
func (s *stream) rmsNorm(op string, o, a kernels.Mat, w []float32, eps float32) {
	t := s.begin(op, simple, 0, func(t *task, p *part, _ int) {
		t.s.dev.table.RMSNorm(t.out.Sub(p.from, p.to), t.x.Sub(p.from, p.to), t.vector, t.eps)
	})
	t.operands = operands{out: o, x: a, vector: w, eps: eps}
	t.rows(a.Rows, 2*a.Cols)
}

// addRMSNorm is AddRMSNorm. // o, a, b (T, C)
func (s *stream) addRMSNorm(op string, o, a, b kernels.Mat, w []float32, eps float32) {
	t := s.begin(op, simple, 0, func(t *task, p *part, _ int) {
		t.s.dev.table.AddRMSNorm(t.out.Sub(p.from, p.to), t.x.Sub(p.from, p.to), t.y.Sub(p.from, p.to), t.vector, t.eps)
	})
	t.operands = operands{out: o, x: a, y: b, vector: w, eps: eps}
	t.rows(a.Rows, 3*a.Cols)
}

// rotate is Rope. // o, a (T, N·stride)
func (s *stream) rotate(op string, o, a kernels.Mat, positions []int32, angles kernels.Mat, r kernels.Rope) {
	t := s.begin(op, simple, 0, func(t *task, p *part, _ int) {
		t.s.dev.table.Rope(t.out.Sub(p.from, p.to), t.x.Sub(p.from, p.to), t.positions[p.from:p.to], t.y, t.rope)
	})
	t.operands = operands{out: o, x: a, y: angles, positions: positions, rope: r}
	t.rows(a.Rows, 2*r.Heads*r.Dim)
}

// add is Add. // o, a, b (T, C)
func (s *stream) add(op string, o, a, b kernels.Mat) {
	t := s.begin(op, simple, 0, func(t *task, p *part, _ int) {
		t.s.dev.table.Add(t.out.Sub(p.from, p.to), t.x.Sub(p.from, p.to), t.y.Sub(p.from, p.to))
	})
	t.operands = operands{out: o, x: a, y: b}
	t.rows(a.Rows, a.Cols)
}
