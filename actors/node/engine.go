package node

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/topology"
)

// epoch is the only one of a group's life: who loses a member ends.
const epoch = 1

// engine is one of the node's, as the supervisor sees it.
type engine struct {
	number    int
	group     *group
	ranks     []*actor.PID // nil: stopped
	ready     int          // ranks that are
	scheduler *actor.PID
	draining  bool
}

// group is the node's part of one.
type group struct {
	layout  topology.Group
	engines []*engine
	ranks   int // of all its engines, here and elsewhere
	agent   *actor.PID
	experts *actor.PID // expertgroup
	up      bool
}
