package rank

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
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
	epoch  uint64        // whose steps it runs, 0 while it is in none; the fields below belong to the actor and outlive its restarts
	newest uint64        // no epoch up to this one is joined any more
	meets  bool          // other ranks take part in its steps
	last   *actors.Plan  // of the last step taken in this epoch, nil for none
}

// New describes a rank; nothing runs before its actor is spawned with Props.
func New(o Options) *Rank { return &Rank{opts: o, device: newDevice(o)} }

// Props make the rank's actor. Every incarnation shares the device goroutine and the state. They are used for one spawn.
// The parent receives RankReady or RankFailed.
func (r *Rank) Props() *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &incarnation{Rank: r} })
}

// Done is closed when the device goroutine has ended and the device is closed. It never is if no actor was spawned, and as long
// as an operation of the device hangs: a node that stops waits for it so long and then leaves the rank behind.
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
	case *actors.Join:
		r.onJoin(ctx, m)
	case *met:
		r.onMet(ctx, m)
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

func (r *incarnation) onJoin(ctx actor.Context, m *actors.Join) {
	refuse := func(reason string) {
		ctx.Respond(&actors.Joined{Rank: r.opts.Rank, Epoch: m.Epoch, Err: fmt.Errorf("joining epoch %d: %s", m.Epoch, reason)})
	}
	switch s := r.current(); {
	case s == failed:
		refuse(r.err.Error())
	case s != ready:
		refuse("the rank is " + s.String())
	case m.Epoch <= r.newest:
		refuse(fmt.Sprintf("the rank has joined epoch %d, or is about to", r.newest))
	case !r.device.offer(job{join: m, sender: ctx.Sender()}):
		refuse("the rank has two jobs already")
	default: // a step that came now would run in an epoch which is not its own
		r.newest, r.epoch, r.meets, r.last = m.Epoch, 0, false, nil
	}
}

func (r *incarnation) onMet(ctx actor.Context, m *met) {
	r.device.ended()
	switch {
	case m.joined.Epoch != r.newest: // the next join waits already
	case m.joined.Err != nil:
		r.newest-- // may be tried again
	default:
		r.epoch, r.meets = m.joined.Epoch, len(m.joined.Comms) > 0
	}
	if m.sender != nil {
		ctx.Send(m.sender, m.joined)
	}
	if hal.ClassOf(m.joined.Err) == hal.DeviceLost && r.current() < failed {
		r.fail(ctx, &actors.Failure{Rank: r.opts.Rank, Node: r.opts.Node, Layer: -1, Err: m.joined.Err})
	}
}

func (r *incarnation) onStep(ctx actor.Context, m *actors.Step) {
	if reason := r.refusal(m.Plan); reason != "" {
		ctx.Respond(&actors.Refused{Rank: r.opts.Rank, Epoch: m.Plan.Epoch, Step: m.Plan.Step, Incarnation: m.Incarnation, Reason: reason})
		return
	}
	if !r.device.offer(job{step: m, sender: ctx.Sender()}) {
		ctx.Respond(&actors.Busy{Rank: r.opts.Rank, Step: m.Plan.Step, Incarnation: m.Incarnation})
		return
	}
	r.last = m.Plan
}

// refusal says why a plan is not one that the rank runs, "" if it is.
func (r *incarnation) refusal(p *actors.Plan) string {
	switch s := r.current(); {
	case s == failed:
		return r.err.Error()
	case s != ready:
		return "the rank is " + s.String()
	case r.epoch == 0:
		return fmt.Sprintf("plan of epoch %d; the rank is in none", p.Epoch)
	case p.Epoch != r.epoch:
		return fmt.Sprintf("plan of epoch %d; the rank is in epoch %d", p.Epoch, r.epoch)
	case p.Action != actors.Run:
		return fmt.Sprintf("plan says %q: ranks run steps only", p.Action)
	case r.last != nil && p.Step <= r.last.Step:
		return fmt.Sprintf("the rank has taken step %d", r.last.Step)
	case r.meets && r.last != nil && p.Wave == r.last.Wave && p.Step != r.last.Step+1:
		// Parks use up numbers, so only steps of one wave are known to follow each other.
		return fmt.Sprintf("the rank has taken step %d of wave %d: step %d is missing", r.last.Step, p.Wave, r.last.Step+1)
	default:
		return ""
	}
}

func (r *incarnation) onResult(ctx actor.Context, m *result) {
	r.device.ended()
	done := m.done
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
		f := &actors.Failure{Rank: r.opts.Rank, Node: r.opts.Node, Layer: -1, Err: errors.New("the rank's actor failed")}
		done := &actors.StepDone{Rank: r.opts.Rank, Incarnation: m.Incarnation, Err: f}
		if m.Plan != nil {
			f.Step, done.Epoch, done.Step = m.Plan.Step, m.Plan.Epoch, m.Plan.Step
		}
		ctx.Send(r.sender, done)
	}
}

func (r *incarnation) onStopping(ctx actor.Context) {
	r.answerFailed(ctx)
	r.device.stop()
	if r.current() != stopping {
		r.become(stopping)
	}
}
