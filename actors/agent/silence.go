package agent

import (
	"fmt"
	"time"

	"github.com/moerack/moerack/actors"
	v1 "github.com/moerack/moerack/messages/v1"
)

// hear notes a sign of life of the coordinator.
func (c *Core) hear(now time.Duration) { c.heard = max(c.heard, now) }

// Deafen says that the bus is not connected: that the coordinator is not heard means nothing, until a while after it is back.
func (c *Core) Deafen(now time.Duration) { c.heard = max(c.heard, now+afterDeafness) }

// waiting reports whether the coordinator must be heard: it owes an answer, or a step runs. As long as it waits for others it shows that
// it lives.
func (c *Core) waiting() bool {
	runs := c.last != nil && !c.ended && c.last.Action == actors.Run
	return runs || c.voting.On() || c.waking.On() || c.breaking.On()
}

// expect says that an answer is waited for from now on, if none was.
func (c *Core) expect(now time.Duration) {
	if !c.waiting() {
		c.hear(now)
	}
}

// silence returns when the coordinator is given up: three times the stall time, which it has for its own verdicts.
func (c *Core) silence() (at time.Duration, ok bool) {
	return c.heard + c.patience(), c.waiting() && !c.leaving
}

func (c *Core) patience() time.Duration { return max(3*c.stall, shortestSilence) }

// giveUp ends the epoch on this node, as the coordinator does not answer.
func (c *Core) giveUp(now time.Duration) {
	what := fmt.Sprintf("its reports on step %d", c.ran)
	switch {
	case c.broken != nil:
		what = fmt.Sprintf("its report that a rank failed (%v)", decodeFailure(c.broken))
	case c.voting.On():
		what = fmt.Sprintf("its votes for step %d", c.next())
	case c.waking.On():
		what = "its call to work"
	}
	err := fmt.Errorf("node %s: no answer of the coordinator for %s to %s: the node that has it is lost, or the bus carries nothing",
		c.node, (now - c.heard).Round(10*time.Millisecond), what)
	c.settle()
	c.gone = &v1.Failure{Layer: -1, Text: err.Error()}
	c.over(c.epoch, err)
}
