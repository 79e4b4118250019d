package cpu

import (
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

// expandedSpan is how many positions are expanded at once, a multiple of kernels.AttentionTile: the keys and values of a head lie in the
// second cache while rows pass over them.
const expandedSpan = 4 * kernels.AttentionTile

// Each part expands for itself, so parts are large: a sequence is cut by rows only where they would take expandedParts times as long as
// others do, and into no fewer than leastExpandedRows.
const (
	expandedParts     = 16
	leastExpandedRows = 64
)

// MLAExpanded attends over keys and values that it makes from the paged cache.
func (s *stream) MLAExpanded(out, q, cache, tables, seqs, positions hal.Tensor, keyUp, valueUp hal.Weight, a hal.MLAExpanded) {
	const op = "MLAExpanded"
	if a.Heads < 1 || a.Latent < 1 || a.Nope < 1 || a.Rope < 0 || a.Value < 1 || a.BlockSize < 1 ||
		a.KeyFrom < 0 || a.KeyFrom+a.Nope > a.KeyRows || a.ValueFrom < 0 || a.ValueFrom+a.Value > a.ValueRows {
		s.fail(op, "%+v: sizes must be positive, and keys and values rows of their heads", a)
	}
	o := s.mat(op, "out", out, q.Rows, a.Heads*a.Value)
	qm := s.mat(op, "q", q, q.Rows, a.Heads*(a.Nope+a.Rope))
	c := s.mat(op, "cache", cache, cache.Rows, a.Latent+a.Rope)
	tb := s.ints(op, "tables", tables, tables.Rows, tables.Cols)
	sq := s.vector(op, "seqs", seqs, q.Rows, math.MinInt32, tables.Rows-1)
	ps := s.vector(op, "positions", positions, q.Rows, 0, tables.Cols*a.BlockSize-1)
	key := s.weight(0, op, "keyUp", keyUp, a.Heads*a.KeyRows, a.Latent)
	value := s.weight(1, op, "valueUp", valueUp, a.Heads*a.ValueRows, a.Latent)
	s.refuseInt8(op, "keyUp", key)
	if s.err != nil {
		return
	}
	if s.checkTables(op, tb, cache.Rows, a.BlockSize); s.err == nil {
		s.expanded(op, operands{out: o, x: qm, y: c, tables: tb, seqs: sq, positions: ps, w: *key, up: *value, expanded: a})
	}
}

// expanded is cut by sequences and heads, and long ones by rows.
func (s *stream) expanded(op string, all operands) {
	a := all.expanded
	t := s.begin(op, attention, expandedScratch(a, len(all.seqs)), expandedPart)
	t.operands = all
	if all.up.Format == kernels.I8 {
		n := s.dev.pool.threads * expandedSpan * a.Latent
		t.bytes = slices.Grow(t.bytes[:0], n)[:n]
	}
	total := 0
	for from := 0; from < len(all.seqs); {
		to := t.together(from)
		total += a.Heads * t.expandedCost(from, to)
		from = to
	}
	most := t.units(1, total, 1)
	for from := 0; from < len(all.seqs); {
		to := t.together(from)
		if all.seqs[from] < 0 {
			clearRows(all.out.Sub(from, to))
			from = to
			continue
		}
		pieces := max(1, min(t.expandedCost(from, to)/(expandedParts*s.dev.pace.part(attention)), (to-from)/leastExpandedRows))
		height := (to - from + pieces - 1) / pieces
		for ; from < to; from += height {
			last := min(from+height, to)
			each := t.expandedCost(from, last)
			few := max(1, min(most/max(each, 1), a.Heads))
			for h := 0; h < a.Heads; h += few {
				end := min(h+few, a.Heads)
				t.parts = append(t.parts, part{from: from, to: last, head: h, headTo: end, cost: each * (end - h)})
			}
		}
		from = to
	}
	t.run()
}

// together returns where the rows end that have the sequence of row from.
func (t *task) together(from int) int {
	to := from + 1
	for to < len(t.seqs) && t.seqs[to] == t.seqs[from] {
		to++
	}
	return to
}

// expandedCost is the multiplications of a head for rows of one sequence.
func (t *task) expandedCost(from, to int) int {
	a := t.expanded
	if t.seqs[from] < 0 {
		return 0
	}
	n, sum := 0, 0
	for _, p := range t.positions[from:to] {
		n = max(n, int(p)+1)
		sum += int(p) + 1
	}
	return n*a.Latent*(a.Nope+a.Value) + sum*(a.Nope+a.Rope+a.Value)
}

// expandedScratch is the floats that a part needs: keys, values, scales of latents in int8, and the state of its rows.
func expandedScratch(a hal.MLAExpanded, rows int) int {
	return expandedSpan*(a.Nope+a.Rope+a.Value+1) + 2*rows
}

func expandedPart(t *task, p *part, thread int) {
	a, scratch := t.expanded, t.scratch[thread*t.each:][:t.each]
	width := a.Nope + a.Rope
	take := func(rows, cols int) kernels.Mat {
		m := kernels.Mat{Data: scratch[:rows*cols], Rows: rows, Cols: cols, Stride: cols}
		scratch = scratch[rows*cols:]
		return m
	}
	keys, values, steps := take(expandedSpan, width), take(expandedSpan, a.Value), take(1, expandedSpan)
	state := scratch[:2*(p.to-p.from)]
	var latents kernels.Rows8
	if t.up.Format == kernels.I8 {
		latents = kernels.Rows8{Data: t.bytes[thread*expandedSpan*a.Latent:], Scale: steps.Row(0), Rows: expandedSpan, Cols: a.Latent, Stride: a.Latent}
	}
	n := 0
	for _, position := range t.positions[p.from:p.to] {
		n = max(n, int(position)+1)
	}
	for h := p.head; h < p.headTo; h++ {
		t.slots[thread][0] = t.w.Sub(h*a.KeyRows+a.KeyFrom, h*a.KeyRows+a.KeyFrom+a.Nope)
		t.slots[thread][1] = t.up.Sub(h*a.ValueRows+a.ValueFrom, h*a.ValueRows+a.ValueFrom+a.Value)
		q, out := t.x.Sub(p.from, p.to).Columns(h*width, (h+1)*width), t.out.Sub(p.from, p.to).Columns(h*a.Value, (h+1)*a.Value)
		for from := 0; from < n; from += expandedSpan {
			to := min(from+expandedSpan, n)
			t.expand(keys, values, latents, t.tables.Row(int(t.seqs[p.from])), from, to, thread)
			t.s.dev.table.AttendKeys(out, q, keys.Sub(0, to-from), values.Sub(0, to-from), t.positions[p.from:p.to], from, a.Scale, state)
		}
	}
}

// expand makes the keys and values of positions [from, to) with the thread's two weights, block by block.
// // keys (to−from, Nope+Rope), values (to−from, Value)
func (t *task) expand(keys, values kernels.Mat, latents kernels.Rows8, blocks []int32, from, to, thread int) {
	a, table, slots := t.expanded, &t.s.dev.table, &t.slots[thread]
	for position := from; position < to; {
		offset := position % a.BlockSize
		count := min(a.BlockSize-offset, to-position)
		first := int(blocks[position/a.BlockSize])*a.BlockSize + offset
		rows, at := t.y.Sub(first, first+count), position-from
		c := rows.Columns(0, a.Latent)
		table.MatMul(keys.Sub(at, at+count).Columns(0, a.Nope), c, &slots[0])
		for i := range count {
			copy(keys.Row(at + i)[a.Nope:], rows.Row(i)[a.Latent:])
		}
		if slots[1].Format == kernels.I8 {
			q := latents.Sub(0, count)
			table.Quantize(q, c)
			table.MatMul8(values.Sub(at, at+count), q, &slots[1])
		} else {
			table.MatMul(values.Sub(at, at+count), c, &slots[1])
		}
		position += count
	}
}

func clearRows(m kernels.Mat) {
	for r := range m.Rows {
		clear(m.Row(r))
	}
}
