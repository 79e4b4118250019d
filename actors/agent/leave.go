package agent

import (
	"fmt"
	"time"

	v1 "github.com/moerack/moerack/messages/v1"
)

// Leave tells an agent that its node ends. The coordinator is told, so that it ends the epoch for all and nobody waits for votes that will
// not come. The agent answers its sender with Left.
type Leave struct {
	Cause error // why the node ends before its time, nil: it was closed
}

// Left answers Leave: the epoch is over, or the coordinator has not said so within half a second.
type Left struct{}

// OnLeave takes that the node ends, for a cause or because it was closed.
func (c *Core) OnLeave(now time.Duration, cause error) {
	if c.last == nil || c.ended {
		c.left()
		return
	}
	c.leaving, c.until = true, now+farewell
	if c.broken == nil {
		c.broken = &v1.Failure{Layer: -1, Text: fmt.Sprintf("node %s has closed", c.node)}
		if cause != nil {
			c.broken.Text = fmt.Sprintf("node %s has failed: %v", c.node, cause)
		}
	}
	c.breaking.Start(now)
	c.sendBroken()
}

func (c *Core) left() {
	c.leaving = false
	c.do(&Left{})
}

// parting returns when the farewell is over.
func (c *Core) parting() (at time.Duration, ok bool) { return c.until, c.leaving }
