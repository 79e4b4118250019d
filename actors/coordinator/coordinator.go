package coordinator

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/subject"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

// Options describe a coordinator. All fields are needed.
type Options struct {
	Node         string // that has the coordinator
	Space        subject.Space
	Bus          bus.Bus
	Layout       topology.Layout   // of the cluster, validated
	Exchange     topology.Exchange // of steps that are run
	StallTimeout time.Duration     // without progress after which a rank is given up
	Counts       *actors.BusCounts
	Logger       *slog.Logger
}

// Props make the coordinator's actor. It cannot be restarted: what it knew of running steps would be lost. Its parent receives
// GroupEnded without a group if the bus refuses to serve it, and with one whose epoch ended because the bus carries nothing. Told to
// Leave, it tells the other nodes that it ends.
func Props(o Options) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &coordinator{Options: o, registry: registry{layout: o.Layout}, groups: map[string]*group{}}
	})
}

// coordinator is the actor: it gives the cores their messages and the time, and sends what they say.
type coordinator struct {
	Options
	start    time.Time // the time of the cores counts from it
	registry registry
	groups   map[string]*group // once all nodes are placed
	sources  []bus.Subscription
	timer    *time.Timer
	due      time.Duration // of timer
	deaf     bool          // the bus was not connected at the last tick
	leaver   *actor.PID    // waits for Left
}

// tick says that a core waits for this moment.
type tick struct{}

// asked is a node's registration and the way back to it.
type asked struct {
	register *v1.Register
	message  bus.Message
}

// Receive implements actor.Actor. It never waits.
func (c *coordinator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.onStarted(ctx)
	case *asked:
		c.onAsked(m)
	case *v1.Ready:
		c.with(ctx, m.Group, func(g *group, now time.Duration) { g.onReady(now, m) })
	case *v1.Votes:
		c.with(ctx, m.Group, func(g *group, now time.Duration) { g.onVotes(now, m) })
	case *v1.Wake:
		c.with(ctx, m.Group, func(g *group, now time.Duration) { g.onWake(now, m) })
	case *v1.Progress:
		c.with(ctx, m.Group, func(g *group, now time.Duration) { g.onProgress(now, m) })
	case *v1.Done:
		c.with(ctx, m.Group, func(g *group, now time.Duration) { g.onDone(now, m) })
	case *Leave:
		c.onLeave(ctx, m)
	case *tick:
		c.onTick(ctx)
	case *actor.Stopping, *actor.Restarting:
		c.onEnd()
	case *actor.Stopped:
	default:
		c.Logger.Error("unexpected message", "actor", "coordinator", "message", fmt.Sprintf("%T", m))
	}
}

func (c *coordinator) onStarted(ctx actor.Context) {
	c.start = time.Now()
	if err := c.subscribe(ctx.ActorSystem().Root, ctx.Self()); err != nil {
		ctx.Send(ctx.Parent(), &actors.GroupEnded{Err: fmt.Errorf("coordinator: %w", err)})
	}
}

func (c *coordinator) now() time.Duration { return time.Since(c.start) }

func (c *coordinator) onAsked(m *asked) {
	answer, placed := c.registry.onRegister(c.now(), m.register)
	if placed {
		nodeOf := c.registry.nodeOf()
		for _, g := range c.Layout.Groups() {
			c.groups[g.Name] = newGroup(g, nodeOf, c.Node, c.Layout.TensorParallel, c.Exchange, c.StallTimeout)
		}
		c.Logger.Info("all nodes are there", "nodes", len(c.registry.nodes), "engines", c.Layout.DataParallel, "groups", len(c.groups))
	}
	if answer.Refusal != "" {
		c.Logger.Warn("node refused", "node", m.register.Node, "reason", answer.Refusal)
	}
	c.answer(m.message, answer)
}

// with gives a group's core a message. A group that is not known yet has sent it from a former life of the cluster.
func (c *coordinator) with(ctx actor.Context, name string, do func(*group, time.Duration)) {
	g := c.groups[name]
	if g == nil {
		return
	}
	do(g, c.now())
	c.send(ctx, g)
	c.schedule(ctx)
	c.left(ctx)
}

func (c *coordinator) onTick(ctx actor.Context) {
	c.timer = nil
	now := c.now()
	deaf := !c.Bus.Connected()
	switch {
	case deaf && !c.deaf:
		c.Logger.Warn("the bus is away: steps wait for it, and nobody is judged by silence", "bus", c.Bus.Kind())
	case c.deaf && !deaf:
		c.Logger.Info("the bus is back", "bus", c.Bus.Kind())
	}
	for _, g := range c.groups {
		if deaf || c.deaf { // since the last tick at least
			g.judge.deafen(now)
		}
	}
	c.deaf = deaf
	for _, g := range c.groups {
		g.tick(now)
		c.send(ctx, g)
	}
	c.schedule(ctx)
	c.left(ctx)
}

// send publishes what a core wants to say.
func (c *coordinator) send(ctx actor.Context, g *group) {
	c.Counts.Resent.Add(g.resent)
	g.resent = 0
	for _, out := range g.take() {
		switch {
		case out.call != nil:
			c.log(g, out.call.Cause)
			c.publish(c.Space.Calls(g.name), out.call)
		case out.mute != nil:
			ctx.Send(ctx.Parent(), &actors.GroupEnded{Group: g.name, Epoch: g.epoch - 1, Err: out.mute})
		case out.node == "":
			c.publish(c.Space.Plans(g.name), encodePlan(out.plan))
		default:
			c.publish(c.Space.Node(g.name, out.node), encodePlan(out.plan))
		}
	}
}

// log says once why an epoch ended.
func (c *coordinator) log(g *group, cause *v1.Failure) {
	switch {
	case cause == nil || g.logged:
		return
	case cause.Node == "":
		c.Logger.Warn("epoch ended", "group", g.name, "epoch", g.epoch-1, "cause", cause.Text)
	default:
		c.Logger.Warn("epoch ended", "group", g.name, "epoch", g.epoch-1, "rank", cause.Rank, "node", cause.Node, "cause", cause.Text)
	}
	g.logged = true
}

func (c *coordinator) publish(subject string, m proto.Message) {
	data, err := proto.Marshal(m)
	if err == nil {
		err = c.Bus.Publish(subject, data)
	}
	if err != nil {
		c.Logger.Warn("not published", "actor", "coordinator", "subject", subject, "error", err)
	}
}

// schedule sees to it that the next tick comes in time. A timer that is too early stays: to move it at every step would cost more.
func (c *coordinator) schedule(ctx actor.Context) {
	at, ok := time.Duration(0), false
	for _, g := range c.groups {
		if t, on := g.next(); on && (!ok || t < at) {
			at, ok = t, true
		}
	}
	if c.timer != nil && ok && c.due <= at {
		return
	}
	c.stopTimer()
	if ok {
		root, self := ctx.ActorSystem().Root, ctx.Self()
		c.due = at
		c.timer = time.AfterFunc(at-c.now(), func() { root.Send(self, &tick{}) })
	}
}

func (c *coordinator) stopTimer() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

func (c *coordinator) onEnd() {
	c.stopTimer()
	for _, s := range c.sources {
		s.Unsubscribe()
	}
}
