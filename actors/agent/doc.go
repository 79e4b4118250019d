// Package agent is a node's voice in a group: one actor for each group that the node has engines of. It gathers the votes of its
// engines into one message, says which plans the node accepts, repeats what is not answered, reports where the ranks are while a step
// runs, and carries a verdict out. It decides nothing that other nodes must know of: the coordinator does.
//
//	in   Vote, Wake, Broken of the node's schedulers; Plan, Call of the coordinator
//	out  Planned, Called, EpochEnded to the schedulers; Votes, Wake, Done, Progress to the coordinator;
//	     AbortEpoch to the expert group; GroupUp, GroupEnded to the node
//
// A coordinator that answers nothing, though the bus is connected, is given up after three times the stall time: the epoch ends on this
// node. A node that ends says so, and the epoch ends for all.
//
// The node accepts plan n of its epoch only as the successor of its last plan, and only if all its engines have voted for n with the
// rows that the plan says. A vote counts once: a later one for the same step changes nothing.
//
// Decisions are in Core, which is pure. While the group is parked no timer runs.
package agent
