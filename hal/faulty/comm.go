package faulty

import "github.com/moerack/moerack/hal"

// comm gives the communicator inside the stream inside. A call that is told to fail never comes to the meeting.
type comm struct {
	hal.Comm
	gate
}

// pass returns the stream for the communicator inside, and whether the call goes on.
func (c *comm) pass(st hal.Stream, op string) (hal.Stream, bool) {
	s, ok := st.(*stream)
	if !ok || s == nil {
		return st, true // not ours: the communicator inside judges it
	}
	return s.inner, s.pass(op)
}

// AllReduce may be told to fail.
func (c *comm) AllReduce(st hal.Stream, out, in hal.Tensor) {
	if st, ok := c.pass(st, "AllReduce"); ok {
		c.Comm.AllReduce(st, out, in)
	}
}

// AllGather may be told to fail.
func (c *comm) AllGather(st hal.Stream, out, in hal.Tensor) {
	if st, ok := c.pass(st, "AllGather"); ok {
		c.Comm.AllGather(st, out, in)
	}
}

// ReduceScatter may be told to fail.
func (c *comm) ReduceScatter(st hal.Stream, out, in hal.Tensor) {
	if st, ok := c.pass(st, "ReduceScatter"); ok {
		c.Comm.ReduceScatter(st, out, in)
	}
}

// AllToAllV may be told to fail.
func (c *comm) AllToAllV(st hal.Stream, out hal.Tensor, recv []int, in hal.Tensor, send []int) {
	if st, ok := c.pass(st, "AllToAllV"); ok {
		c.Comm.AllToAllV(st, out, recv, in, send)
	}
}

// Send may be told to fail.
func (c *comm) Send(st hal.Stream, t hal.Tensor, to int) {
	if st, ok := c.pass(st, "Send"); ok {
		c.Comm.Send(st, t, to)
	}
}

// Recv may be told to fail.
func (c *comm) Recv(st hal.Stream, t hal.Tensor, from int) {
	if st, ok := c.pass(st, "Recv"); ok {
		c.Comm.Recv(st, t, from)
	}
}

// Barrier may be told to fail.
func (c *comm) Barrier(st hal.Stream) {
	if st, ok := c.pass(st, "Barrier"); ok {
		c.Comm.Barrier(st)
	}
}

// Close closes the communicator inside also when it is told to fail.
func (c *comm) Close() error {
	told := c.call("CommClose")
	if err := c.Comm.Close(); err != nil {
		return err
	}
	return told
}
