package cpu

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moerack/moerack/hal"
)

// comm is the communicator of one rank. Operations run in the calling goroutine, like all work of this backend, and return when
// the memory of all operands may be used again.
//
// On a stream that has an error an operation does nothing, so the others wait for this rank until somebody calls Abort. That is
// the supervisor's part: it is told of the error and knows who else is in the group.
type comm struct {
	dev    *device
	group  hal.Group
	m      *meeting
	closed bool
	sum    [sumElements]float32
}

// Group returns what the communicator was made for.
func (c *comm) Group() hal.Group {
	g := c.group
	g.Names = slices.Clone(g.Names)
	return g
}

// begin returns the stream that carries op and the call to fill, or a nil stream if there is nothing to do.
func (c *comm) begin(st hal.Stream, op string, peer int) (*stream, *call) {
	s, ok := st.(*stream)
	if !ok || s == nil || s.dev != c.dev {
		// Nobody can be told on a stream of somebody else, and the others must not wait for ever.
		c.m.end(c.wrong(op, "the stream does not belong to device "+c.dev.name))
		if ok && s != nil {
			s.fail(op, "%s: the communicator belongs to device %s", label(c.group), c.dev.name)
		}
		return nil, nil
	}
	switch {
	case s.err != nil:
		return nil, nil
	case c.closed:
		s.fail(op, "%s: the communicator is closed", label(c.group))
		return nil, nil
	case peer != everyone && (peer < 0 || peer >= c.group.Size || peer == c.group.Rank):
		// Who is waiting for this call is not known.
		s.fail(op, "%s: peer %d of %s: want another rank of 0 … %d", label(c.group), peer, c.group.Names[c.group.Rank], c.group.Size-1)
		c.m.end(ending{class: hal.CallerFault, what: c.group.Names[c.group.Rank] + " brought a wrong call", cause: s.err})
		return nil, nil
	}
	me := &c.m.members[c.group.Rank].call
	*me = call{op: op, peer: peer}
	return s, me
}

func (c *comm) wrong(op, what string) ending {
	return ending{class: hal.CallerFault, what: fmt.Sprintf("%s: %s: %s", c.group.Names[c.group.Rank], op, what)}
}

// meet brings the call to the others, also one whose operands are wrong, and reports whether all run.
func (c *comm) meet(s *stream) bool {
	op, own := c.m.members[c.group.Rank].call.op, s.err
	c.m.members[c.group.Rank].call.err = own
	err := s.dev.pulse(op, true)
	if err == nil {
		err = c.m.enter(c.group.Rank)
		_ = s.dev.pulse(op, false) // who has met finishes
	}
	s.err = cmp.Or(own, err)
	return s.err == nil
}

// between runs the member's part of an operation that has met, and goes through the second gate. A part panics where it reads a mapped
// file that was cut short: that must not leave the others behind.
func (c *comm) between(s *stream, part func()) {
	finished := false
	defer func() {
		if !finished {
			c.m.tear(c.group.Rank)
		}
		s.err = c.m.leave(c.group.Rank)
	}()
	part()
	finished = true
}

// floats refuses sums of anything but F32.
func (c *comm) floats(s *stream, op string, in hal.Tensor) {
	if in.DType != hal.F32 {
		s.fail(op, "in: %s: only F32 is summed", in)
	}
}

// same refuses operands of two types.
func (c *comm) same(s *stream, op string, out, in hal.Tensor) {
	if out.DType != in.DType {
		s.fail(op, "out: %s, in: %s: want one type", out, in)
	}
}

// Abort ends the meeting for all members.
func (c *comm) Abort(cause error) {
	if cause == nil {
		cause = errNoCause
	}
	c.m.end(ending{class: hal.Aborted, what: "aborted", cause: cause})
}

// Close gives the rank's place up.
func (c *comm) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.dev.comms = slices.DeleteFunc(c.dev.comms, func(o *comm) bool { return o == c })
	c.m.close(c.group.Rank)
	return nil
}
