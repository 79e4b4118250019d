package scheduler

import (
	"context"
	"errors"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
)

// handOver gives all ranks of the engine the steps that were planned and that they do not have, in order. A step is not held back but
// for the text of the one before it: so a rank goes from step to step by itself.
func (s *incarnation) handOver(ctx actor.Context) {
	for _, f := range s.stand.flights {
		if f.handed {
			continue
		}
		if s.stand.halted || s.core.held(f.plan.Step) {
			return
		}
		f.handed = true
		batch := f.batch
		if batch == nil {
			batch = &actors.Batch{}
		}
		for _, rank := range s.opts.Ranks {
			ctx.Request(rank, &actors.Step{Plan: f.plan, Batch: batch, Incarnation: f.inc})
		}
	}
}

func (s *incarnation) onStepDone(ctx actor.Context, m *actors.StepDone) {
	if m.Lost {
		s.onLost(ctx, m)
		return
	}
	f := s.stand.flight(m.Step)
	if f == nil || m.Epoch != s.opts.Epoch || m.Incarnation != f.inc {
		return // of a step or an epoch that has ended
	}
	if m.Err != nil {
		s.unrun(ctx, f, m.Rank, m.Err)
		return
	}
	if !f.answer(m.Rank-s.opts.FirstRank, m) {
		s.opts.Logger.Error("answer of a rank that has answered, or is none of the engine's", "engine", s.opts.Engine, "step", m.Step, "rank", m.Rank)
		return
	}
	s.land(ctx)
}

// land takes the results of steps that all ranks have answered, in order.
func (s *incarnation) land(ctx actor.Context) {
	for !s.stand.halted {
		f := s.stand.landed()
		if f == nil {
			break
		}
		var o outcome
		if f.inc == s.inc { // a former incarnation's rows are padding: their requests have ended
			var err error
			if o, err = s.core.done(f.plan.Step, f.sampled); err != nil {
				s.unrun(ctx, f, s.opts.FirstRank, err)
				return
			}
		}
		s.opts.Ledger.stepRun(f, o)
		for _, t := range o.tokens {
			s.tell(ctx, t.id, s.answers[t.id].take(t))
		}
	}
	s.goOn(ctx)
}

// onUnrun takes that a rank did not run a step.
func (s *incarnation) onUnrun(ctx actor.Context, rank int, step, inc uint64, err error) {
	if f := s.stand.flight(step); f != nil && f.inc == inc {
		s.unrun(ctx, f, rank, err)
	}
}

// unrun takes that a step gave nothing. Where other ranks take part in it, the group's verdict follows; else the step's requests
// end with err and the others go on.
func (s *incarnation) unrun(ctx actor.Context, f *flight, rank int, err error) {
	if s.stand.meets {
		s.halt(ctx, f.plan.Step, rank, err)
		return
	}
	err = s.failure(f.plan.Step, rank, err)
	s.stand.drop(f)
	if f.inc == s.inc {
		ids, unknown := s.core.failed(f.plan.Step)
		s.opts.Logger.Log(context.Background(), severity(err), "step failed", "engine", s.opts.Engine, "step", f.plan.Step, "requests", len(ids), "error", errors.Join(err, unknown))
		for _, id := range ids {
			s.tell(ctx, id, actors.Chunk{Text: s.answers[id].stops.Flush(), Finish: actors.FinishError, Err: err})
		}
	}
	s.goOn(ctx)
}

// onLost takes that a rank will run no step any more.
func (s *incarnation) onLost(ctx actor.Context, m *actors.StepDone) {
	if s.stand.meets {
		s.halt(ctx, m.Step, m.Rank, m.Err)
		return
	}
	s.endAll(ctx, m.Err)
}

// halt stops voting: a step of the group failed here. Requests stay until the epoch ends. An aborted step is the consequence of
// what happened elsewhere and is reported there.
func (s *incarnation) halt(ctx actor.Context, step uint64, rank int, err error) {
	if s.stand.over != nil {
		return
	}
	s.stand.halted = true
	s.opts.Logger.Log(context.Background(), severity(err), "step failed, waiting for the group's verdict", "engine", s.opts.Engine, "rank", rank, "step", step, "error", err)
	if hal.ClassOf(err) == hal.Aborted {
		return
	}
	ctx.Send(s.opts.Agent, &actors.Broken{Epoch: s.opts.Epoch, Failure: s.failure(step, rank, err)})
}

// severity is that of an error, unless err says that its cause is elsewhere, where it is reported, or the node's own end.
func severity(err error) slog.Level {
	if hal.ClassOf(err) == hal.Aborted {
		return slog.LevelDebug
	}
	return slog.LevelError
}

// failure says who failed and in which step, unless err says it.
func (s *incarnation) failure(step uint64, rank int, err error) *actors.Failure {
	var f *actors.Failure
	if errors.As(err, &f) {
		return f
	}
	return &actors.Failure{Rank: rank, Node: s.opts.Node, Step: step, Layer: -1, Err: err}
}
