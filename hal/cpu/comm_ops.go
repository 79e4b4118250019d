package cpu

import "github.com/moerack/moerack/hal"

// sumElements is how many elements are summed at a time: the sum stays in the nearest cache while the members are added.
const sumElements = 1024

// AllReduce sums in the order of the ranks; each member sums a share of the elements for all.
func (c *comm) AllReduce(st hal.Stream, out, in hal.Tensor) {
	const op = "AllReduce"
	s, me := c.begin(st, op, everyone)
	if s == nil {
		return
	}
	me.in, me.out = s.block(op, "in", in, -1, -1), s.block(op, "out", out, in.Rows, in.Cols)
	c.floats(s, op, in)
	c.same(s, op, out, in)
	if c.meet(s) {
		c.between(s, func() { c.allReduce(me) })
	}
}

func (c *comm) allReduce(me *call) {
	cols := me.in.cols
	from, to := share(me.in.rows*cols, c.group.Rank, c.group.Size)
	for from < to {
		row, col := from/cols, from%cols
		n := min(cols-col, to-from, sumElements)
		sum := c.add(row, col, n)
		for i := range c.m.members {
			copy(c.m.members[i].call.out.f.Row(row)[col:], sum)
		}
		from += n
	}
}

// ReduceScatter sums this member's rows in the order of the ranks.
func (c *comm) ReduceScatter(st hal.Stream, out, in hal.Tensor) {
	const op = "ReduceScatter"
	s, me := c.begin(st, op, everyone)
	if s == nil {
		return
	}
	me.out, me.in = s.block(op, "out", out, -1, -1), s.block(op, "in", in, out.Rows*c.group.Size, out.Cols)
	c.floats(s, op, in)
	c.same(s, op, out, in)
	if c.meet(s) {
		c.between(s, func() { c.reduceScatter(me) })
	}
}

func (c *comm) reduceScatter(me *call) {
	first := c.group.Rank * me.out.rows
	for row := range me.out.rows {
		for col := 0; col < me.out.cols; col += sumElements {
			n := min(me.out.cols-col, sumElements)
			copy(me.out.f.Row(row)[col:], c.add(first+row, col, n))
		}
	}
}

// add returns in₀ + in₁ + … of n elements of a row, valid until the next call.
func (c *comm) add(row, col, n int) []float32 {
	sum := c.sum[:n]
	copy(sum, c.m.members[0].call.in.f.Row(row)[col:])
	for i := 1; i < len(c.m.members); i++ {
		in := c.m.members[i].call.in.f.Row(row)[col:][:n]
		for e := range sum {
			sum[e] += in[e]
		}
	}
	return sum
}

// AllGather copies the rows of all members.
func (c *comm) AllGather(st hal.Stream, out, in hal.Tensor) {
	const op = "AllGather"
	s, me := c.begin(st, op, everyone)
	if s == nil {
		return
	}
	me.in, me.out = s.block(op, "in", in, -1, -1), s.block(op, "out", out, in.Rows*c.group.Size, in.Cols)
	c.same(s, op, out, in)
	if c.meet(s) {
		c.between(s, func() {
			for i := range c.m.members {
				copyRows(&me.out, i*me.in.rows, &c.m.members[i].call.in, 0, me.in.rows)
			}
		})
	}
}

// AllToAllV copies from each member the rows it has for this one.
func (c *comm) AllToAllV(st hal.Stream, out hal.Tensor, recv []int, in hal.Tensor, send []int) {
	const op = "AllToAllV"
	s, me := c.begin(st, op, everyone)
	if s == nil {
		return
	}
	me.in, me.out = s.block(op, "in", in, -1, -1), s.block(op, "out", out, -1, in.Cols)
	me.send, me.recv = send, recv
	c.same(s, op, out, in)
	c.counts(s, "send", send, in)
	c.counts(s, "recv", recv, out)
	if c.meet(s) {
		c.between(s, func() { c.allToAll(me) })
	}
}

func (c *comm) allToAll(me *call) {
	to := 0
	for i, n := range me.recv {
		p := &c.m.members[i].call
		from := 0
		for _, before := range p.send[:c.group.Rank] {
			from += before
		}
		copyRows(&me.out, to, &p.in, from, n)
		to += n
	}
}

// counts checks that there is one count per member and that t has the rows. Each is compared alone so that no sum overflows.
func (c *comm) counts(s *stream, name string, counts []int, t hal.Tensor) {
	if len(counts) != c.group.Size {
		s.fail("AllToAllV", "%s: %d counts, want one for each of %d members", name, len(counts), c.group.Size)
	}
	left := t.Rows
	for i, n := range counts {
		if n < 0 || n > left {
			s.fail("AllToAllV", "%s[%d] = %d of %v: want 0 or more, and together at most the rows of %s", name, i, n, counts, t)
			return
		}
		left -= n
	}
}

// Send waits until the peer has copied t.
func (c *comm) Send(st hal.Stream, t hal.Tensor, to int) {
	const op = "Send"
	s, me := c.begin(st, op, to)
	if s == nil {
		return
	}
	me.in = s.block(op, "t", t, -1, -1)
	if c.meet(s) {
		s.err = c.m.passed(&c.m.members[c.group.Rank], running) // the peer has copied
	}
}

// Recv copies from the peer and then lets it go.
func (c *comm) Recv(st hal.Stream, t hal.Tensor, from int) {
	const op = "Recv"
	s, me := c.begin(st, op, from)
	if s == nil {
		return
	}
	me.out = s.block(op, "t", t, -1, -1)
	if c.meet(s) {
		finished := false
		defer func() { c.m.received(c.group.Rank, from, finished) }()
		copyRows(&me.out, 0, &c.m.members[from].call.in, 0, me.out.rows)
		finished = true
	}
}

// Barrier needs the first gate only: there is no memory to protect.
func (c *comm) Barrier(st hal.Stream) {
	if s, _ := c.begin(st, "Barrier", everyone); s != nil {
		c.meet(s)
	}
}
