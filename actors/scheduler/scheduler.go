package scheduler

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/sample"
)

// Options describe a scheduler.
type Options struct {
	Settings
	Rank   *actor.PID // runs the steps
	Ledger *Ledger
	Logger *slog.Logger
	// NewText returns a function that takes the tokens of one answer in order and returns the text each completes. It is
	// nil without a tokenizer: then answers have no text and requests no stop strings.
	NewText func() func(id int32) string
}

// life is what outlives a restart of the actor.
type life struct {
	opts        Options
	incarnation uint64
	step, wave  uint64 // where the next incarnation goes on
	lost        error  // the rank will not run another step
}

// Props make the scheduler's actor. An incarnation that fails ends its requests with an error; the next one starts empty, and
// what the rank still has to say to the former is dropped. They are used for one spawn.
func Props(o Options) *actor.Props {
	l := &life{opts: o}
	return actor.PropsFromProducer(func() actor.Actor {
		l.incarnation++
		c := newCore(o.Settings)
		c.step, c.wave = l.step, l.wave
		return &incarnation{life: l, inc: l.incarnation, core: c, answers: map[actors.RequestID]*answer{}}
	})
}

// incarnation is the scheduler's actor between two restarts.
type incarnation struct {
	*life
	inc     uint64
	core    *core
	answers map[actors.RequestID]*answer
	running *run // the step at the rank
	current *actors.Submit
	client  *actor.PID // of current
}

// Receive implements actor.Actor. It never waits.
func (s *incarnation) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.opts.Ledger.kvFree(s.core.pool.FreeBlocks())
	case *actors.Submit:
		s.current, s.client = m, ctx.Sender()
		s.onSubmit(ctx, m)
		s.current, s.client = nil, nil
	case *actors.Abort:
		s.onAbort(ctx, m)
	case *actors.StepDone:
		s.onStepDone(ctx, m)
	case *actors.Refused:
		s.onUnrun(ctx, m.Incarnation, m.Step, m)
	case *actors.Busy:
		s.onUnrun(ctx, m.Incarnation, m.Step, fmt.Errorf("step %d: the rank still runs what it was given before the scheduler restarted", m.Step))
	case *actor.Restarting:
		s.onEnd(ctx, errors.New("the scheduler failed and restarts"))
	case *actor.Stopping:
		s.onEnd(ctx, errors.New("the scheduler has stopped"))
	case *actor.Stopped:
	default:
		s.opts.Logger.Error("unexpected message", "engine", s.opts.Engine, "message", fmt.Sprintf("%T", m))
	}
}

func (s *incarnation) onSubmit(ctx actor.Context, m *actors.Submit) {
	a := &answer{client: ctx.Sender(), stops: sample.NewStopMatcher(m.Request.Stop)}
	s.answers[m.ID] = a
	if s.lost != nil {
		s.tell(ctx, m.ID, actors.Chunk{Finish: actors.FinishError, Err: s.lost})
		return
	}
	if s.opts.NewText != nil {
		a.text = s.opts.NewText()
	}
	if !s.core.submit(m.ID, m.Prompt, m.Request) {
		s.tell(ctx, m.ID, actors.Chunk{Finish: actors.FinishLength})
		return
	}
	s.goOn(ctx)
}

func (s *incarnation) onAbort(ctx actor.Context, m *actors.Abort) {
	if a, ok := s.answers[m.ID]; ok {
		s.tell(ctx, m.ID, actors.Chunk{Text: a.stops.Flush(), Finish: actors.FinishAbort})
		s.goOn(ctx)
	}
}

func (s *incarnation) onStepDone(ctx actor.Context, m *actors.StepDone) {
	if m.Lost {
		s.onLost(ctx, m.Err)
		return
	}
	if m.Incarnation != s.inc || m.Epoch != s.opts.Epoch {
		return // asked for by a former incarnation or in a former epoch, whose requests have ended
	}
	if m.Err != nil {
		s.unrun(ctx, m.Step, m.Err)
		return
	}
	tokens, err := s.core.done(m.Step, m.Sampled)
	if err != nil {
		s.unrun(ctx, m.Step, err)
		return
	}
	s.opts.Ledger.stepRun(s.running, generated(tokens))
	s.running = nil
	for _, t := range tokens {
		s.tell(ctx, t.id, s.answers[t.id].take(t))
	}
	s.goOn(ctx)
}

func generated(tokens []token) int {
	n := 0
	for _, t := range tokens {
		if t.err == nil {
			n++
		}
	}
	return n
}

// onUnrun takes that the rank did not run a step.
func (s *incarnation) onUnrun(ctx actor.Context, inc, step uint64, err error) {
	if inc == s.inc {
		s.unrun(ctx, step, err)
	}
}

// unrun ends the requests of the step in flight with err; the others go on.
func (s *incarnation) unrun(ctx actor.Context, step uint64, err error) {
	ids, unknown := s.core.failed(step)
	if unknown != nil {
		s.opts.Logger.Error("answer for a step that is not in flight", "engine", s.opts.Engine, "error", errors.Join(unknown, err))
		return
	}
	s.running = nil
	s.opts.Logger.Error("step failed", "engine", s.opts.Engine, "step", step, "requests", len(ids), "error", err)
	for _, id := range ids {
		s.tell(ctx, id, actors.Chunk{Text: s.answers[id].stops.Flush(), Finish: actors.FinishError, Err: err})
	}
	s.goOn(ctx)
}

// onLost ends all requests: the rank is gone.
func (s *incarnation) onLost(ctx actor.Context, err error) {
	s.lost = err
	for id, a := range s.answers {
		s.tell(ctx, id, actors.Chunk{Text: a.stops.Flush(), Finish: actors.FinishError, Err: err})
	}
}

// onEnd answers all requests when the incarnation ends, the one among them at whose message it panicked. The core is left
// alone: it may be what failed, and goes with the incarnation, its pool included.
func (s *incarnation) onEnd(ctx actor.Context, err error) {
	s.life.step, s.life.wave = s.core.step, s.core.wave
	if s.running != nil {
		s.life.step = s.running.plan.Step + 1
	}
	err = fmt.Errorf("engine %d: %w", s.opts.Engine, err)
	if m := s.current; m != nil && s.answers[m.ID] == nil {
		s.answers[m.ID] = &answer{client: s.client, stops: sample.NewStopMatcher(nil)}
	}
	s.opts.Ledger.kvFree(s.opts.KVBlocks)
	for id, a := range s.answers {
		delete(s.answers, id)
		if a.client != nil {
			ctx.Send(a.client, &actors.Progress{ID: id, Chunk: actors.Chunk{
				Text: a.stops.Flush(), Finish: actors.FinishError, Err: err, Engine: s.opts.Engine,
			}})
		}
	}
}

// tell sends a chunk; if it is the request's last, the request is forgotten and its blocks are free before anyone can know.
func (s *incarnation) tell(ctx actor.Context, id actors.RequestID, c actors.Chunk) {
	a := s.answers[id]
	c.Engine = s.opts.Engine
	if c.Finish != "" {
		s.core.end(id)
		delete(s.answers, id)
		s.opts.Ledger.kvFree(s.core.pool.FreeBlocks())
	}
	if a.client != nil {
		ctx.Send(a.client, &actors.Progress{ID: id, Chunk: c})
	}
}

// goOn starts the next step if there is one to run.
func (s *incarnation) goOn(ctx actor.Context) {
	if s.lost != nil {
		return
	}
	r, err := s.core.next()
	switch {
	case err != nil:
		panic(fmt.Sprintf("scheduler: invariant \"an engine's own vote makes a plan\" broken: %v", err))
	case r == nil:
		s.opts.Ledger.kvFree(s.core.pool.FreeBlocks())
		return
	}
	s.running = r
	s.opts.Ledger.kvFree(s.core.pool.FreeBlocks())
	ctx.Request(s.opts.Rank, &actors.Step{Plan: r.plan, Batch: r.batch, Incarnation: s.inc})
}
