package node

import (
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/agent"
	"github.com/moerack/moerack/actors/coordinator"
)

// onRankFailed takes that a rank will run no step. In a group of several the coordinator decides for all what follows from
// it, unless it is silent for too long.
func (s *supervisor) onRankFailed(ctx actor.Context, m *actors.RankFailed) {
	g := s.engineOf(m.Rank).group
	if g.ranks == 1 || g.agent == nil || !g.up {
		s.node.fail(m.Err)
		return
	}
	s.later(ctx, s.node.opts.StallTimeout, &overdue{m.Err})
}

// onGroupEnded takes a verdict, which fails the node. To one that closes it only says that there is nothing left to wait for, unless it is
// a rank of its own that the verdict names.
func (s *supervisor) onGroupEnded(ctx actor.Context, m *actors.GroupEnded) {
	var f *actors.Failure
	mine := errors.As(m.Err, &f) && f.Node == s.node.opts.Name
	if s.phase < aborting || mine && s.phase < leaving || m.Group == "" {
		s.node.fail(m.Err)
		return
	}
	for _, g := range s.groups {
		if g.layout.Name == m.Group {
			s.node.release()
			s.endEpoch(ctx, g, m.Err) // its engines have drained with that
		}
	}
}

// onFailure ends the epochs of all groups: whoever waits for a lost rank is let go, and requests end with the cause.
func (s *supervisor) onFailure(ctx actor.Context, m *failure) {
	for _, g := range s.groups {
		s.endEpoch(ctx, g, m.err)
	}
	if s.phase == draining {
		s.leave(ctx)
	}
}

// endEpoch ends what the engines and ranks of a group do: of an epoch that is over nothing is wanted any more.
func (s *supervisor) endEpoch(ctx actor.Context, g *group, err error) {
	defer s.abandon(g)
	if g.experts != nil {
		ctx.Send(g.experts, &actors.AbortEpoch{Epoch: epoch, Err: err})
	}
	for _, e := range g.engines {
		if e.scheduler != nil {
			ctx.Send(e.scheduler, &actors.EpochEnded{Epoch: epoch, Err: err})
		}
	}
}

// abandon cancels what the ranks of a group do, as no later epoch will use them. They hear first how the epoch ended: who waits for
// others in a meeting returns with the cause.
func (s *supervisor) abandon(g *group) {
	for _, e := range g.engines {
		from, to := s.node.opts.Layout.Ranks(e.number)
		abandon(s.node.ranks[from-s.node.first : to-s.node.first])
	}
}

func (s *supervisor) onShutdown(ctx actor.Context) {
	switch {
	case s.phase >= aborting:
	case s.gateway != nil:
		s.become(aborting)
		ctx.Request(s.gateway, &actors.AbortAll{})
	default:
		s.leave(ctx)
	}
}

func (s *supervisor) onAllAborted(ctx actor.Context) {
	if s.phase == aborting {
		s.drain(ctx)
	}
}

// drain lets the engines run until their groups are parked: a rank that left in the middle of a step would leave others
// waiting. A node that has failed has nothing to finish.
func (s *supervisor) drain(ctx actor.Context) {
	if s.node.Err() != nil {
		s.leave(ctx)
		return
	}
	s.become(draining)
	for _, e := range s.engines {
		if e.scheduler != nil {
			e.draining = true
			ctx.Request(e.scheduler, &actors.Drain{})
		}
	}
	s.later(ctx, s.node.opts.StallTimeout, &drainOver{})
	s.drained(ctx)
}

func (s *supervisor) onDrained(ctx actor.Context, m *actors.Drained) {
	for _, e := range s.engines {
		if e.number == m.Engine {
			e.draining = false
		}
	}
	s.drained(ctx)
}

// drained goes on when no engine has anything to finish.
func (s *supervisor) drained(ctx actor.Context) {
	if s.phase == draining && !slices.ContainsFunc(s.engines, func(e *engine) bool { return e.draining }) {
		s.leave(ctx)
	}
}

// onHurry ends what was to be waited for. Steps under way may have begun on some ranks only, so all are let go.
func (s *supervisor) onHurry(ctx actor.Context) {
	if s.phase == ending { // the schedulers are about to stop, or have
		for _, g := range s.groups {
			s.abandon(g)
		}
		return
	}
	for _, g := range s.groups {
		s.endEpoch(ctx, g, ErrClosed)
	}
	if s.phase == leaving {
		s.end(ctx)
	} else {
		s.leave(ctx)
	}
}

// leave tells the other nodes, so that they wait for nothing from this one: the coordinator does, where it is, and where it is not it is
// asked to.
func (s *supervisor) leave(ctx actor.Context) {
	s.become(leaving)
	switch n := s.node; {
	case n.opts.alone():
	case n.opts.Coordinate:
		s.part(ctx, s.coordinator, &coordinator.Leave{Cause: n.Err()})
	default:
		for _, g := range s.groups {
			s.part(ctx, g.agent, &agent.Leave{Cause: n.Err()})
		}
	}
	s.onLeft(ctx, nil)
}

func (s *supervisor) part(ctx actor.Context, who *actor.PID, leave any) {
	if who != nil {
		s.parting = append(s.parting, who)
		ctx.Request(who, leave)
	}
}

// onLeft takes that a child has told other nodes, or has stopped; nil is none.
func (s *supervisor) onLeft(ctx actor.Context, who *actor.PID) {
	s.parting = slices.DeleteFunc(s.parting, func(p *actor.PID) bool { return who != nil && p.Equal(who) })
	if s.phase == leaving && len(s.parting) == 0 {
		s.end(ctx)
	}
}

func (s *supervisor) end(ctx actor.Context) {
	s.become(ending)
	s.stopNext(ctx)
}

// stopNext stops what comes next in the order; onTerminated calls it again. Each child hears first what was sent to it before,
// how its epoch ended above all.
func (s *supervisor) stopNext(ctx actor.Context) {
	for _, pid := range s.order() {
		if pid != nil {
			ctx.Poison(pid)
			return
		}
	}
	ctx.Stop(ctx.Self())
}

// order lists the children in the order of their end; those that have stopped are nil.
func (s *supervisor) order() (list []*actor.PID) {
	for _, e := range s.engines {
		list = append(list, e.scheduler)
	}
	for _, g := range s.groups {
		list = append(list, g.agent, g.experts)
	}
	for _, e := range s.engines {
		list = append(list, e.ranks...)
	}
	return append(list, s.gateway, s.coordinator)
}

// onTerminated takes that a child has stopped: in the order of the end, or because its failures used up the budget; then the
// node has failed.
func (s *supervisor) onTerminated(ctx actor.Context, m *actor.Terminated) {
	for _, e := range s.engines {
		s.engineChild(ctx, e, m.Who)
	}
	for _, g := range s.groups {
		forget(&g.agent, m.Who)
		forget(&g.experts, m.Who)
	}
	forget(&s.coordinator, m.Who)
	if forget(&s.gateway, m.Who) {
		s.node.gatewayGone()
		if s.phase == aborting {
			s.drain(ctx)
		}
	}
	if s.phase == ending {
		s.stopNext(ctx)
	} else {
		s.onLeft(ctx, m.Who)
	}
}

// engineChild takes that a child has stopped, if it is one of the engine's.
func (s *supervisor) engineChild(ctx actor.Context, e *engine, who *actor.PID) {
	for i := range e.ranks {
		if forget(&e.ranks[i], who) && s.phase < ending && e.scheduler != nil { // the step it had will not be answered
			from, _ := s.node.opts.Layout.Ranks(e.number)
			ctx.Send(e.scheduler, &actors.StepDone{Rank: from + i, Err: s.node.cause(), Lost: true})
		}
	}
	if forget(&e.scheduler, who) && s.phase < ending {
		e.draining = false
		if s.gateway != nil {
			ctx.Send(s.gateway, &actors.EngineGone{Engine: e.number, Err: s.node.cause()})
		}
		s.drained(ctx)
	}
}

// forget clears a PID that is who's.
func forget(pid **actor.PID, who *actor.PID) bool {
	if *pid == nil || !(*pid).Equal(who) {
		return false
	}
	*pid = nil
	return true
}
