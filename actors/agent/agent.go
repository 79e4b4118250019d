package agent

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
	"github.com/moerack/moerack/model/nn"
)

// Options describe an agent. All fields are needed.
type Options struct {
	Node         string // name
	Group        string // name
	Space        subject.Space
	Bus          bus.Bus
	Engines      []Engine // of this node in the group, ascending
	Ranks        []Rank   // of these engines, ascending
	ExpertGroup  *actor.PID
	StallTimeout time.Duration // the coordinator's
	Counts       *actors.BusCounts
	Logger       *slog.Logger
}

// Engine is an engine of the node.
type Engine struct {
	Engine    int
	Scheduler *actor.PID // receives Planned, Called and EpochEnded
}

// Rank is a rank of the node.
type Rank struct {
	Rank     int          // global
	Progress *nn.Progress // where in a step it is
}

// Props make the agent's actor. It cannot be restarted: what it knew of votes and plans would be lost. Its parent receives GroupUp and
// GroupEnded; the latter with epoch 0 if the bus refuses to serve it. Told to Leave, it says goodbye to the coordinator.
func Props(o Options) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		a := &agent{Options: o, schedulers: map[int]*actor.PID{}}
		var engines []int
		for _, e := range o.Engines {
			a.schedulers[e.Engine] = e.Scheduler
			engines = append(engines, e.Engine)
		}
		a.core = NewCore(o.Node, o.Group, engines, o.StallTimeout)
		return a
	})
}

// agent is the actor: it gives the core its messages and the time, and carries out what it says.
type agent struct {
	Options
	core       *Core
	schedulers map[int]*actor.PID
	start      time.Time // the time of the core counts from it
	sources    []bus.Subscription
	timer      *time.Timer
	due        time.Duration // of timer
	leaver     *actor.PID    // waits for Left
}

// tick says that the core waits for this moment.
type tick struct{}

// Receive implements actor.Actor. It never waits.
func (a *agent) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.onStarted(ctx)
		return
	case *actors.Vote:
		a.core.OnVote(a.now(), m)
	case *actors.Wake:
		a.core.OnWake(a.now(), m)
	case *actors.Broken:
		a.core.OnBroken(a.now(), m)
	case *actors.Plan:
		a.core.OnPlan(a.now(), m)
	case *v1.Call:
		a.core.OnCall(a.now(), m)
	case *Leave:
		a.leaver = ctx.Sender()
		a.core.OnLeave(a.now(), m.Cause)
	case *tick:
		a.timer = nil
		if !a.Bus.Connected() {
			a.core.Deafen(a.now())
		}
		a.core.Tick(a.now())
	case *actor.Stopping, *actor.Restarting:
		a.onEnd()
		return
	case *actor.Stopped:
		return
	default:
		a.Logger.Error("unexpected message", "actor", "agent", "group", a.Group, "message", fmt.Sprintf("%T", m))
		return
	}
	for _, effect := range a.core.Take() {
		a.carryOut(ctx, effect)
	}
	a.count()
	a.schedule(ctx)
}

func (a *agent) onStarted(ctx actor.Context) {
	a.start = time.Now()
	if err := a.subscribe(ctx.ActorSystem().Root, ctx.Self()); err != nil {
		ctx.Send(ctx.Parent(), &actors.GroupEnded{Group: a.Group, Err: fmt.Errorf("agent of group %s: %w", a.Group, err)})
	}
}

func (a *agent) now() time.Duration { return time.Since(a.start) }

func (a *agent) carryOut(ctx actor.Context, effect any) {
	switch e := effect.(type) {
	case *v1.Votes:
		a.publish(subject.Votes, e)
	case *v1.Wake:
		a.publish(subject.Wake, e)
	case *v1.Done:
		a.publish(subject.Done, e)
	case Report:
		m, through := a.progress(e)
		a.core.Reported(e, through)
		a.publish(subject.Progress, m)
	case ForEngine:
		ctx.Send(a.schedulers[e.Engine], e.Message)
	case *actors.AbortEpoch:
		ctx.Send(a.ExpertGroup, e)
	case *actors.GroupUp:
		ctx.Send(ctx.Parent(), e)
		ctx.Send(a.ExpertGroup, e)
	case *actors.GroupEnded:
		ctx.Send(ctx.Parent(), e)
	case *Left:
		ctx.Request(a.leaver, e)
	case Refused:
		a.Logger.Error("plan refused", "group", a.Group, "error", e.Reason)
	default:
		panic(fmt.Sprintf("agent: invariant \"every effect is known\" broken: %T", e))
	}
}

// progress reads where the ranks are, and whether they are through with the step that they owe.
func (a *agent) progress(r Report) (m *v1.Progress, through bool) {
	m, through = &v1.Progress{Group: a.Group, Term: r.Term, Epoch: r.Epoch, Node: a.Node}, true
	for _, rank := range a.Ranks {
		p := rank.Progress.Read()
		through = through && !p.Running && p.Step >= r.Step
		m.Ranks = append(m.Ranks, &v1.RankProgress{
			Rank: uint32(rank.Rank), Step: p.Step, Index: uint32(max(p.Index, 0)), Op: string(p.Op.Name), Layer: int32(p.Op.Layer),
			Stage: uint32(p.Op.Stage), Running: p.Running, Waiting: p.Waiting, Moves: p.Moves,
		})
	}
	return m, through
}

func (a *agent) publish(k subject.Kind, m proto.Message) {
	data, err := proto.Marshal(m)
	if err == nil {
		err = a.Bus.Publish(a.Space.Coordinator(k), data)
	}
	if err != nil {
		a.Logger.Warn("not published", "actor", "agent", "group", a.Group, "kind", string(k), "error", err)
	}
}

func (a *agent) count() {
	a.Counts.Votes.Add(a.core.sent)
	a.Counts.Plans.Add(a.core.accepted)
	a.Counts.Resent.Add(a.core.resent)
	a.core.sent, a.core.accepted, a.core.resent = 0, 0, 0
}

// schedule sees to it that the next tick comes in time. A timer that is too early stays: to move it at every step would cost more.
func (a *agent) schedule(ctx actor.Context) {
	at, ok := a.core.Next()
	if a.timer != nil && ok && a.due <= at {
		return
	}
	a.stopTimer()
	if ok {
		root, self := ctx.ActorSystem().Root, ctx.Self()
		a.due = at
		a.timer = time.AfterFunc(at-a.now(), func() { root.Send(self, &tick{}) })
	}
}

func (a *agent) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

func (a *agent) onEnd() {
	a.stopTimer()
	for _, s := range a.sources {
		s.Unsubscribe()
	}
}
