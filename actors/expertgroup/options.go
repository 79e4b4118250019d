package expertgroup

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/subject"
	"github.com/moerack/moerack/topology"
)

// Options describe a node's part of a group in one epoch.
type Options struct {
	Space  subject.Space
	Bus    bus.Bus
	Group  topology.Group
	Layout topology.Layout // of the cluster, validated
	Epoch  uint64
	Node   string
	// Nodes says which node has a rank, by global number, for messages about ranks elsewhere; "" if that is not known. // (world)
	Nodes  []string
	Ranks  []Rank // of this node in the group: all ranks of its engines, ascending, ready to join
	Logger *slog.Logger
}

// Rank is a rank of this node.
type Rank struct {
	Rank int        // global
	PID  *actor.PID // gets Join and answers with Joined
}

// Props make the group's actor. It cannot be restarted: whom it has heard would be lost. It begins at once, and takes
//
//	Joined      from its ranks
//	GroupUp     from the agent or the node: Ready was heard
//	AbortEpoch  from the agent or the node
//
// Its parent receives GroupEnded if the bus refuses to serve it.
func Props(o Options) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return newGroup(o) })
}
