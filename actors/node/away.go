package node

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// onLookForBus looks for the bus and comes again. While it is away steps wait for it: a node that serves fails after BusTimeout, one that
// drains its engines, which takes plans, gives that up at the second look.
func (s *supervisor) onLookForBus(ctx actor.Context) {
	n := s.node
	if n.opts.Bus.Connected() {
		s.busAway = 0
	} else {
		s.busAway += busLook
	}
	switch {
	case s.phase > draining || n.Err() != nil:
		return
	case s.phase == draining && s.busAway >= 2*busLook:
		s.onHurry(ctx)
		return
	case s.busAway > n.opts.BusTimeout:
		n.fail(fmt.Errorf("node %s: the bus (%s) has been away for %s (bus-timeout): start its server again; requests in flight have ended",
			n.opts.Name, n.opts.Bus.Kind(), n.opts.BusTimeout))
		return
	}
	if s.busTimer == nil {
		send, self := ctx.ActorSystem().Root, ctx.Self()
		s.busTimer = time.AfterFunc(busLook, func() { send.Send(self, &lookForBus{}) })
		return
	}
	s.busTimer.Reset(busLook)
}
