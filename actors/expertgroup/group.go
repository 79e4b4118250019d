package expertgroup

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/messages/bus"
	v1 "github.com/moerack/moerack/messages/v1"
)

// errStopped ends what was still gathering when the actor stopped.
var errStopped = errors.New("the node stops")

// group is the actor: it gives the core its messages and the time, and does what it says.
type group struct {
	Options
	core       *core
	start      time.Time // the time of the core counts from it
	gatherings map[string]*gathering
	comms      []hal.Comm // of the ranks here
	source     bus.Subscription
	timer      *time.Timer
	due        time.Duration // of timer
}

// tick says that the core waits for this moment.
type tick struct{}

func newGroup(o Options) *group {
	ranks := make([]int, len(o.Ranks))
	for i, r := range o.Ranks {
		ranks[i] = r.Rank
	}
	return &group{Options: o, core: newCore(o.Group, o.Layout, o.Epoch, o.Node, ranks), gatherings: map[string]*gathering{}}
}

// Receive implements actor.Actor. It never waits.
func (g *group) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		g.onStarted(ctx)
	case *published:
		g.carryOut(ctx, g.core.onPublished(g.now(), m.kind, m.rank, m.data))
	case *v1.Endpoints:
		g.carryOut(ctx, g.core.onEndpoints(m.Node, m.Kind, m.Epoch, decodeEndpoints(m), m.Complete))
	case *actors.Joined:
		g.onJoined(ctx, m)
	case *actors.GroupUp:
		g.core.onUp(m.Epoch)
		g.carryOut(ctx, nil)
	case *actors.AbortEpoch:
		g.carryOut(ctx, g.core.onAbort(m.Epoch, m.Err))
	case *tick:
		g.timer = nil
		g.carryOut(ctx, g.core.tick(g.now()))
	case *actor.Stopping, *actor.Restarting:
		g.onEnd()
	case *actor.Stopped:
	default:
		g.Logger.Error("unexpected message", "actor", "expertgroup", "group", g.Group.Name, "message", fmt.Sprintf("%T", m), "phase", g.core.phase.String())
	}
}

func (g *group) now() time.Duration { return time.Since(g.start) }

// onStarted listens to the other nodes before its ranks begin, so that nothing is missed that need not be.
func (g *group) onStarted(ctx actor.Context) {
	g.start = time.Now()
	for _, o := range g.core.circles {
		g.gatherings[o.kind] = newGathering(hal.Group{
			Name: g.Group.Name + "/" + o.kind, Epoch: g.Epoch, Size: o.to - o.from, Names: g.names(o),
		})
	}
	if err := g.listen(ctx.ActorSystem().Root, ctx.Self()); err != nil {
		ctx.Send(ctx.Parent(), &actors.GroupEnded{Group: g.Group.Name, Epoch: g.Epoch, Err: fmt.Errorf("group %s: listening to its members: %w", g.Group.Name, err)})
		return
	}
	for _, r := range g.Ranks {
		place := g.Layout.Place(r.Rank)
		ctx.Request(r.PID, &actors.Join{
			Epoch: g.Epoch,
			TP:    g.meeting(ctx, g.core.circle(tpKind(place.Engine)), r.Rank),
			EP:    g.meeting(ctx, g.core.circle(epKind), r.Rank),
		})
	}
}

// names returns what messages call the members of a communicator.
func (g *group) names(o *circle) []string {
	names := make([]string, o.to-o.from)
	for i := range names {
		r := o.from + i
		names[i] = fmt.Sprintf("rank %d", r)
		if _, here := o.local[i]; here {
			names[i] += " on node " + g.Node
		} else if r < len(g.Nodes) && g.Nodes[r] != "" {
			names[i] += " on node " + g.Nodes[r]
		}
	}
	return names
}

// meeting returns where a rank joins a communicator, nil if there is none.
func (g *group) meeting(ctx actor.Context, o *circle, rank int) *actors.Meeting {
	if o == nil {
		return nil
	}
	root, self := ctx.ActorSystem().Root, ctx.Self()
	r := &rendezvous{gathering: g.gatherings[o.kind], kind: o.kind, rank: rank - o.from, send: func(m *published) { root.Send(self, m) }}
	m := &actors.Meeting{Group: r.gathering.group, Rendezvous: r}
	m.Group.Rank = r.rank
	return m
}

func (g *group) onJoined(ctx actor.Context, m *actors.Joined) {
	if m.Epoch == g.Epoch {
		g.comms = append(g.comms, m.Comms...)
	}
	g.carryOut(ctx, g.core.onJoined(g.now(), m.Rank, m.Epoch, m.Err))
}

func (g *group) carryOut(ctx actor.Context, effects []effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case announce:
			g.publish(g.Space.Endpoints(g.Group.Name), g.encodeEndpoints(e.circle))
		case heard:
			g.gatherings[e.kind].add(e.rank, e.data)
		case report:
			g.onReport(e)
		case abort:
			for _, o := range g.gatherings {
				o.fail(e.cause)
			}
			for _, c := range g.comms {
				c.Abort(e.cause)
			}
		}
	}
	g.schedule(ctx)
}

// schedule sets the timer to when the core has to say something again.
func (g *group) schedule(ctx actor.Context) {
	due, ok := g.core.repeat.Next()
	if g.timer != nil && (!ok || due != g.due) {
		g.timer.Stop()
		g.timer = nil
	}
	if ok && g.timer == nil {
		root, self := ctx.ActorSystem().Root, ctx.Self()
		g.due = due
		g.timer = time.AfterFunc(due-g.now(), func() { root.Send(self, &tick{}) })
	}
}

// onEnd lets those go who still gather. Communicators that were made are the ranks' to close.
func (g *group) onEnd() {
	if g.timer != nil {
		g.timer.Stop()
	}
	if g.source != nil {
		g.source.Unsubscribe()
	}
	for _, o := range g.gatherings {
		o.fail(errStopped)
	}
}
