package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
)

// supervision of the node's actors: a fault that comes back at once is not worth more tries.
const (
	restartBudget   = 3
	restartWindow   = time.Minute
	restartDelay    = 50 * time.Millisecond
	restartDelayMax = 2 * time.Second
)

// strategy treats the children of the supervisor: those whose state outlives them are restarted, the others are stopped at
// the first failure, because a plan or vote of a core that has forgotten what it said could contradict it.
type strategy struct {
	restart, stop *actors.Supervision
}

// restarts are the kinds of actors, by the first word of their names, that are restarted: their state is not theirs alone.
var restarts = [...]string{"rank", "scheduler", "gateway"}

// HandleFailure implements the library's strategy.
func (s *strategy) HandleFailure(sys *actor.ActorSystem, parent actor.Supervisor, child *actor.PID, rs *actor.RestartStatistics, reason, message any) {
	kind, _, _ := strings.Cut(strings.TrimPrefix(child.Id, root+"/"), "/")
	for _, k := range restarts {
		if kind == k {
			s.restart.HandleFailure(sys, parent, child, rs, reason, message)
			return
		}
	}
	s.stop.HandleFailure(sys, parent, child, rs, reason, message)
}

// close cancels restarts that are due.
func (s *strategy) close() {
	s.restart.Close()
	s.stop.Close()
}

// supervision makes a strategy that fails the node when it gives a child up.
func (n *Node) supervision(budget int) *actors.Supervision {
	return &actors.Supervision{
		Budget: budget, Window: restartWindow, Delay: restartDelay, MaxDelay: restartDelayMax, Logger: n.log,
		GiveUp: func(_ *actor.PID, err error) { n.fail(fmt.Errorf("node %s: %w", n.opts.Name, err)) },
	}
}
