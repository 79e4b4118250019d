package rank

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
)

// state is where a rank is in its life.
type state uint8

const (
	loading state = iota
	ready
	failed
	stopping
)

var stateNames = [...]string{"loading weights", "ready", "failed", "stopping"}

func (s state) String() string { return stateNames[s] }

// Rank is one rank of a node. Its state belongs to its actor; Done, Abandon and State may be used by anyone.
type Rank struct {
	opts   Options
	device *device
	state  atomic.Uint32 // a state; written by the actor only
	err    error         // why it failed
}

// New describes a rank; nothing runs before its actor is spawned with Props.
func New(o Options) *Rank { return &Rank{opts: o, device: newDevice(o)} }

// Props make the rank's actor. Every incarnation shares the device goroutine and the state. They are used for one spawn.
// The parent receives RankReady or RankFailed.
func (r *Rank) Props() *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &incarnation{Rank: r} })
}

// Done is closed when the device goroutine has ended and the device is closed. It never is if no actor was spawned.
func (r *Rank) Done() <-chan struct{} { return r.device.done }

// Abandon cancels the context of whatever the device goroutine is doing, for a stop that cannot wait.
func (r *Rank) Abandon() { r.device.cancel() }

// State says in words what the rank is doing.
func (r *Rank) State() string { return r.current().String() }

func (r *Rank) current() state { return state(r.state.Load()) }

// become makes a transition. A rank that is stopping stays so; an edge that the picture in the package comment does not have
// breaks an invariant.
func (r *Rank) become(next state) {
	from := r.current()
	if next <= from {
		panic(fmt.Sprintf("rank: invariant \"a rank only moves on\" broken: %s -> %s", from, next))
	}
	r.state.Store(uint32(next))
	r.opts.Logger.Debug("rank changed state", "rank", r.opts.Rank, "from", from.String(), "to", next.String())
}

// incarnation is the rank's actor between two restarts.
type incarnation struct {
	*Rank
	unanswered *actors.Step // the step being handled, whose sender must hear of it
	sender     *actor.PID
}

// Receive implements actor.Actor. It never waits.
func (r *incarnation) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		r.device.start(ctx.ActorSystem().Root, ctx.Self())
	case *opened:
		r.onOpened(ctx, m)
	case *actors.Step:
		r.unanswered, r.sender = m, ctx.Sender()
		r.onStep(ctx, m)
		r.unanswered, r.sender = nil, nil
	case *result:
		r.onResult(ctx, m)
	case *actor.Restarting:
		r.answerFailed(ctx)
	case *actor.Stopping:
		r.onStopping(ctx)
	case *actor.Stopped:
	default:
		r.opts.Logger.Error("unexpected message", "rank", r.opts.Rank, "message", fmt.Sprintf("%T", m), "state", r.State())
	}
}

func (r *incarnation) onOpened(ctx actor.Context, m *opened) {
	switch {
	case r.current() == stopping:
	case m.err != nil:
		r.fail(ctx, m.err)
	default:
		r.become(ready)
		ctx.Send(ctx.Parent(), &actors.RankReady{Rank: r.opts.Rank, Facts: m.facts})
	}
}

func (r *incarnation) onStep(ctx actor.Context, m *actors.Step) {
	refuse := func(reason string) {
		ctx.Respond(&actors.Refused{Epoch: r.opts.Epoch, Step: m.Plan.Step, Incarnation: m.Incarnation, Reason: reason})
	}
	switch s := r.current(); {
	case s == failed:
		refuse(r.err.Error())
	case s != ready:
		refuse(fmt.Sprintf("rank %d on node %s is %s", r.opts.Rank, r.opts.Node, s))
	case m.Plan.Epoch != r.opts.Epoch:
		refuse(fmt.Sprintf("plan of epoch %d; rank %d on node %s is in epoch %d", m.Plan.Epoch, r.opts.Rank, r.opts.Node, r.opts.Epoch))
	case m.Plan.Action != actors.Run:
		refuse(fmt.Sprintf("plan says %q: ranks run steps only", m.Plan.Action))
	case !r.device.offer(&job{step: m, sender: ctx.Sender()}):
		ctx.Respond(&actors.Busy{Step: m.Plan.Step, Incarnation: m.Incarnation})
	}
}

func (r *incarnation) onResult(ctx actor.Context, m *result) {
	done := m.done
	if done.Lost {
		done.Err = fmt.Errorf("rank %d on node %s: step %d: %w", r.opts.Rank, r.opts.Node, done.Step, done.Err)
	}
	if m.sender != nil {
		ctx.Send(m.sender, done)
	}
	if done.Lost && r.current() < failed {
		r.fail(ctx, done.Err)
	}
}

func (r *incarnation) fail(ctx actor.Context, err error) {
	r.err = err
	r.become(failed)
	ctx.Send(ctx.Parent(), &actors.RankFailed{Rank: r.opts.Rank, Err: err})
}

// answerFailed answers the step at which this incarnation panicked.
func (r *incarnation) answerFailed(ctx actor.Context) {
	if m := r.unanswered; m != nil && r.sender != nil {
		ctx.Send(r.sender, &actors.StepDone{
			Epoch: m.Plan.Epoch, Step: m.Plan.Step, Incarnation: m.Incarnation,
			Err: fmt.Errorf("rank %d on node %s: step %d: the rank's actor failed", r.opts.Rank, r.opts.Node, m.Plan.Step),
		})
	}
}

func (r *incarnation) onStopping(ctx actor.Context) {
	r.answerFailed(ctx)
	r.device.stop()
	if r.current() != stopping {
		r.become(stopping)
	}
}
