package node

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/scheduler"
)

// epoch and term are of a group that has one membership and one leadership for its whole life.
const epoch, term = 1, 1

// shutdown asks the supervisor to end everything in order.
type shutdown struct{}

// phase is where a supervisor is in its life.
type phase uint8

const (
	loading  phase = iota // the rank loads
	serving               // scheduler and gateway take requests
	aborting              // the gateway ends its requests
	ending                // actors stop one after the other
)

var phaseNames = [...]string{"loading", "serving", "aborting", "ending"}

func (p phase) String() string { return phaseNames[p] }

// supervisor is the parent of all other actors. It ends: all requests aborted, scheduler, rank, gateway, itself.
type supervisor struct {
	node      *Node
	phase     phase
	rank      *actor.PID
	scheduler *actor.PID
	gateway   *actor.PID
}

// become makes a transition; phases only move on.
func (s *supervisor) become(next phase) {
	if next <= s.phase {
		panic(fmt.Sprintf("node: invariant \"phases only move on\" broken: %s -> %s", s.phase, next))
	}
	s.node.log.Debug("node changed phase", "from", s.phase.String(), "to", next.String())
	s.phase = next
}

// Receive implements actor.Actor. It never waits.
func (s *supervisor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.onStarted(ctx)
	case *actors.RankReady:
		s.onRankReady(ctx, m)
	case *actors.RankFailed:
		s.node.fail(m.Err)
	case *shutdown:
		s.onShutdown(ctx)
	case *actors.AllAborted:
		s.onAllAborted(ctx)
	case *actor.Terminated:
		s.onTerminated(ctx, m)
	case *actor.Stopping, *actor.Restarting:
	case *actor.Stopped:
		s.onStopped()
	default:
		s.node.log.Error("unexpected message", "message", fmt.Sprintf("%T", m), "phase", s.phase.String())
	}
}

// spawn starts a child. Names are unique by construction, so an error is a broken invariant.
func (s *supervisor) spawn(ctx actor.Context, props *actor.Props, name string) *actor.PID {
	pid, err := ctx.SpawnNamed(props, name)
	if err != nil {
		panic(fmt.Sprintf("node: invariant \"actor names are unique\" broken: %s: %v", name, err))
	}
	return pid
}

func (s *supervisor) onStarted(ctx actor.Context) {
	s.rank = s.spawn(ctx, s.node.rank.Props(), "rank/0")
}

func (s *supervisor) onRankReady(ctx actor.Context, m *actors.RankReady) {
	if s.phase != loading {
		return
	}
	n, f := s.node, m.Facts
	ledger := scheduler.NewLedger(0, f.KVBlocks)
	s.scheduler = s.spawn(ctx, scheduler.Props(scheduler.Options{
		Settings: scheduler.Settings{
			Engine: 0, Term: term, Epoch: epoch, ModelLen: f.ModelLen, MaxNumBatchedTokens: n.opts.MaxNumBatchedTokens,
			MaxNumSeqs: n.opts.MaxNumSeqs, BlockSize: n.opts.BlockSize, KVBlocks: f.KVBlocks, EOS: n.opts.Config.EOSTokenIDs,
		},
		Rank: s.rank, Ledger: ledger, Logger: n.log, NewText: n.newText(),
	}), "scheduler/0")
	s.gateway = s.spawn(ctx, gateway.Props(gateway.Options{Engines: []*actor.PID{s.scheduler}, Logger: n.log}), "gateway")
	s.become(serving)
	n.ready(f, ledger, s.gateway)
}

func (s *supervisor) onShutdown(ctx actor.Context) {
	switch {
	case s.phase >= aborting:
	case s.gateway != nil:
		s.become(aborting)
		ctx.Request(s.gateway, &actors.AbortAll{})
	default:
		s.become(ending)
		s.stopNext(ctx)
	}
}

func (s *supervisor) onAllAborted(ctx actor.Context) {
	if s.phase == aborting {
		s.become(ending)
		s.stopNext(ctx)
	}
}

// stopNext stops what comes next in the order; onTerminated calls it again.
func (s *supervisor) stopNext(ctx actor.Context) {
	for _, pid := range []*actor.PID{s.scheduler, s.rank, s.gateway} {
		if pid != nil {
			ctx.Stop(pid)
			return
		}
	}
	ctx.Stop(ctx.Self())
}

// onTerminated takes that a child has stopped: in the order of the end, or because its failures used up the budget.
func (s *supervisor) onTerminated(ctx actor.Context, m *actor.Terminated) {
	switch {
	case m.Who.Equal(s.rank):
		s.rank = nil
		if s.phase < ending && s.scheduler != nil { // the step it had will not be answered
			ctx.Send(s.scheduler, &actors.StepDone{Err: s.node.cause(), Lost: true})
		}
	case m.Who.Equal(s.scheduler):
		s.scheduler = nil
		if s.phase < ending && s.gateway != nil {
			ctx.Send(s.gateway, &actors.EngineGone{Engine: 0, Err: s.node.cause()})
		}
	case m.Who.Equal(s.gateway):
		s.gateway = nil
		s.node.gatewayGone()
		if s.phase == aborting {
			s.become(ending)
		}
	}
	if s.phase == ending {
		s.stopNext(ctx)
	}
}

func (s *supervisor) onStopped() {
	if s.phase < ending {
		s.node.fail(errors.New("the node's supervisor stopped"))
	}
	s.node.gatewayGone()
	close(s.node.stopped)
}
