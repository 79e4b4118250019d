package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/agent"
	"github.com/moerack/moerack/actors/coordinator"
)

// ranksPlaced tells the supervisor that the node's ranks have their devices.
type ranksPlaced struct{}

// failure tells the supervisor that the node has failed.
type failure struct{ err error }

// shutdown asks the supervisor to end everything in order.
type shutdown struct{}

// hurry tells the supervisor not to wait for engines that drain, nor for other nodes.
type hurry struct{}

// drainOver tells the supervisor that engines have had their time to drain.
type drainOver struct{}

// lookForBus tells the supervisor to see whether the bus is there.
type lookForBus struct{}

// busLook is the time between two such looks.
const busLook = 500 * time.Millisecond

// overdue tells the supervisor that the verdict on a rank has not come.
type overdue struct{ err error }

// phase is where a supervisor is in its life.
type phase uint8

const (
	loading  phase = iota // the node registers, ranks load and join
	serving               // the gateway takes requests
	aborting              // the gateway ends its requests
	draining              // engines run until their groups are parked
	leaving               // other nodes are told
	ending                // actors stop one after the other
)

var phaseNames = [...]string{"loading", "serving", "aborting", "draining", "leaving", "ending"}

func (p phase) String() string { return phaseNames[p] }

// supervisor is the parent of all other actors.
type supervisor struct {
	node        *Node
	phase       phase
	coordinator *actor.PID
	engines     []*engine
	groups      []*group
	gateway     *actor.PID
	parting     []*actor.PID // tell other nodes that this one leaves
	timers      []*time.Timer
	busTimer    *time.Timer   // for the next look, nil before the first
	busAway     time.Duration // by looks: a process that was stopped meanwhile has not waited
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
	case *ranksPlaced:
		s.onPlaced(ctx)
	case *actors.RankReady:
		s.onRankReady(ctx, m)
	case *actors.RankFailed:
		s.onRankFailed(ctx, m)
	case *actors.GroupUp:
		s.onGroupUp(ctx, m)
	case *actors.GroupEnded:
		s.onGroupEnded(ctx, m)
	case *overdue:
		s.node.fail(m.err)
	case *failure:
		s.onFailure(ctx, m)
	case *shutdown:
		s.onShutdown(ctx)
	case *actors.AllAborted:
		s.onAllAborted(ctx)
	case *actors.Drained:
		s.onDrained(ctx, m)
	case *coordinator.Left, *agent.Left:
		s.onLeft(ctx, ctx.Sender())
	case *drainOver:
		if s.phase == draining {
			s.onHurry(ctx)
		}
	case *lookForBus:
		s.onLookForBus(ctx)
	case *hurry:
		s.onHurry(ctx)
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

// later sends the supervisor a message after a time, unless it has stopped by then.
func (s *supervisor) later(ctx actor.Context, d time.Duration, message any) {
	send, self := ctx.ActorSystem().Root, ctx.Self()
	s.timers = append(s.timers, time.AfterFunc(d, func() { send.Send(self, message) }))
}

func (s *supervisor) onStopped() {
	for _, t := range s.timers {
		t.Stop()
	}
	if s.busTimer != nil {
		s.busTimer.Stop()
	}
	if s.phase < ending {
		s.node.fail(errors.New("the node's supervisor stopped"))
	}
	s.node.gatewayGone()
	close(s.node.stopped)
}
