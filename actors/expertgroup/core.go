package expertgroup

import (
	"fmt"
	"slices"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/topology"
)

// phase is where a group is in its epoch.
type phase uint8

const (
	joining phase = iota
	joined        // all ranks here are in; Ready is repeated until the first plan
	failed        // a rank could not join; that is repeated until the epoch ends
	up
	aborted
)

var phaseNames = [...]string{"joining", "joined", "failed", "up", "aborted"}

func (p phase) String() string { return phaseNames[p] }

// core decides what the actor does: messages and the time go in, effects come out. It has no clock: now is the time since any
// moment that does not change.
type core struct {
	phase   phase
	epoch   uint64
	node    string
	ranks   []int // of this node, ascending
	circles []*circle
	joined  map[int]bool
	failure *actors.Failure // of the first rank that could not join
	cause   error           // why the epoch is over
	repeat  actors.Repeat
}

// An effect is what the core asks the shell to do.
type effect interface{ effect() }

type (
	// announce tells the other nodes what is known of a communicator's members here.
	announce struct{ circle *circle }
	// heard hands a member's endpoint to the ranks here that collect.
	heard struct {
		kind string
		rank int // in the communicator
		data []byte
	}
	// report tells the coordinator that the ranks have joined, or the failure.
	report struct{ failure *actors.Failure }
	// abort ends all communicators, those in the making too.
	abort struct{ cause error }
)

func (announce) effect() {}
func (heard) effect()    {}
func (report) effect()   {}
func (abort) effect()    {}

func newCore(group topology.Group, layout topology.Layout, epoch uint64, node string, ranks []int) *core {
	c := &core{epoch: epoch, node: node, ranks: ranks, joined: map[int]bool{}}
	first, last := group.Engines[0], group.Engines[len(group.Engines)-1]
	from, _ := layout.Ranks(first)
	_, to := layout.Ranks(last)
	for _, e := range group.Engines {
		if f, t := layout.Ranks(e); layout.TensorParallel > 1 && slices.Contains(ranks, f) {
			c.circles = append(c.circles, newCircle(tpKind(e), f, t, ranks))
		}
	}
	if layout.EP() > 1 {
		c.circles = append(c.circles, newCircle(epKind, from, to, ranks))
	}
	return c
}

func (c *core) circle(kind string) *circle {
	for _, o := range c.circles {
		if o.kind == kind {
			return o
		}
	}
	return nil
}

// become makes a transition; a phase that does not follow breaks an invariant.
func (c *core) become(next phase) {
	if next <= c.phase || c.phase == failed && next == up {
		panic(fmt.Sprintf("expertgroup: invariant \"phases follow the picture\" broken: %s -> %s", c.phase, next))
	}
	c.phase = next
}

// onPublished takes the endpoint of a rank here. Others hear of it when all of their kind here have published, or with the next
// repetition.
func (c *core) onPublished(now time.Duration, kind string, rank int, data []byte) []effect {
	o := c.circle(kind)
	effects := o.take(rank, data)
	if len(effects) == 0 || !o.abroad() || c.phase != joining {
		return effects
	}
	c.repeat.Start(now)
	if len(o.own()) == len(o.local) {
		effects = append(effects, announce{o})
	}
	return effects
}

// onEndpoints takes endpoints of another node. Whoever has all answers those who lack some.
func (c *core) onEndpoints(node, kind string, epoch uint64, endpoints map[int][]byte, complete bool) []effect {
	o := c.circle(kind)
	if epoch != c.epoch || node == c.node || o == nil || c.phase == aborted {
		return nil
	}
	var effects []effect
	for rank := range o.have {
		if data, ok := endpoints[rank]; ok {
			if _, here := o.local[rank]; !here {
				effects = append(effects, o.take(rank, data)...)
			}
		}
	}
	if !complete && o.missing == 0 {
		effects = append(effects, announce{o})
	}
	return effects
}

// onJoined takes that a rank is in its communicators, or could not join them. An error that another rank's failure caused gives
// way to the cause.
func (c *core) onJoined(now time.Duration, rank int, epoch uint64, err error) []effect {
	switch {
	case epoch != c.epoch || !slices.Contains(c.ranks, rank):
		return nil
	case c.phase == aborted: // its communicators came too late for the abort
		return []effect{abort{c.cause}}
	case err != nil:
		return c.onFailed(now, rank, err)
	}
	c.joined[rank] = true
	if c.phase != joining || len(c.joined) < len(c.ranks) {
		return nil
	}
	c.become(joined)
	c.repeat.Start(now)
	return []effect{report{}}
}

func (c *core) onFailed(now time.Duration, rank int, err error) []effect {
	switch {
	case c.phase == joining:
		c.become(failed)
	case c.phase != failed || hal.ClassOf(c.failure.Err) != hal.Aborted || hal.ClassOf(err) == hal.Aborted:
		return nil
	}
	c.failure = &actors.Failure{Rank: rank, Node: c.node, Layer: -1, Err: err}
	c.repeat.Start(now)
	return []effect{report{c.failure}}
}

// onUp takes that the group has its first plan: the coordinator has heard everyone.
func (c *core) onUp(epoch uint64) {
	if epoch == c.epoch && c.phase == joined {
		c.become(up)
		c.repeat.Stop()
	}
}

// onAbort ends the epoch. The first cause counts.
func (c *core) onAbort(epoch uint64, cause error) []effect {
	if epoch != c.epoch || c.phase == aborted {
		return nil
	}
	c.become(aborted)
	c.cause = cause
	c.repeat.Stop()
	return []effect{abort{cause}}
}

// tick says again what may not have been heard.
func (c *core) tick(now time.Duration) []effect {
	if !c.repeat.Due(now) {
		return nil
	}
	switch c.phase {
	case joined, failed:
		return []effect{report{c.failure}}
	case joining:
		var effects []effect
		for _, o := range c.circles {
			if o.abroad() && o.missing > 0 && len(o.own()) > 0 {
				effects = append(effects, announce{o})
			}
		}
		if len(effects) == 0 {
			c.repeat.Stop()
		}
		return effects
	case up, aborted:
	}
	return nil
}
