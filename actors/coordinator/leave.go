package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	v1 "github.com/moerack/moerack/messages/v1"
)

// farewell is how long a coordinator that ends tells those that do not acknowledge it.
const farewell = 500 * time.Millisecond

// Leave tells the coordinator that its node ends: the groups that have engines on other nodes end their epoch, so that nobody waits for
// a plan that will not come. The coordinator answers its sender with Left.
type Leave struct {
	Cause error // why the node ends before its time, nil: it was closed
}

// Left answers Leave, when all other nodes have acknowledged the end or the time for it is over, half a second.
type Left struct{}

// leave ends the epoch of a group that has other nodes, or goes on telling an end that they have not acknowledged.
func (g *group) leave(now time.Duration, why string) {
	if g.leaving || len(g.unheeding()) == 0 {
		return
	}
	g.leaving, g.until = true, now+farewell
	if g.state != ended {
		g.endEpoch(now, &v1.Failure{Text: why, Layer: -1}, g.judge.enginesOf(g.own))
		return
	}
	g.resent++
	g.verdict.Start(now)
	g.sendCall()
}

// unheeding returns the other nodes that have not acknowledged an end.
func (g *group) unheeding() []string {
	return slices.DeleteFunc(slices.Clone(g.nodes), func(n string) bool { return n == g.own || g.heeded[n] })
}

// left reports whether a group that was told to leave waits for nobody.
func (g *group) left(now time.Duration) bool {
	return !g.leaving || now >= g.until || len(g.unheeding()) == 0
}

func (c *coordinator) onLeave(ctx actor.Context, m *Leave) {
	why := fmt.Sprintf("node %s, which has the coordinator, has closed", c.Node)
	if m.Cause != nil {
		why = fmt.Sprintf("node %s, which has the coordinator, has failed: %v", c.Node, m.Cause)
	}
	c.leaver = ctx.Sender()
	for _, g := range c.groups {
		g.leave(c.now(), why)
		c.send(ctx, g)
	}
	c.schedule(ctx)
	c.left(ctx)
}

// left answers who waits for the end, if it has come.
func (c *coordinator) left(ctx actor.Context) {
	if c.leaver == nil {
		return
	}
	for _, g := range c.groups {
		if !g.left(c.now()) {
			return
		}
	}
	ctx.Request(c.leaver, &Left{})
	c.leaver = nil
}
