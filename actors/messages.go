package actors

import (
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

// Submit hands a checked request to an engine's scheduler. Its sender receives the Progress messages, and with every Submit
// exactly one with a FinishReason, whatever happens to the engine.
type Submit struct {
	ID      RequestID
	Prompt  []int32 // the prompt's token ids, not changed after this
	Request *Request
}

// Abort ends a request of an engine with FinishAbort, in whatever state it is. It changes nothing if the request has ended.
type Abort struct {
	ID RequestID
}

// Progress carries a chunk of a request's answer from its engine to the gateway.
type Progress struct {
	ID    RequestID
	Chunk Chunk
}

// Planned tells a scheduler that its node accepted a plan. Plans of an epoch come in order, none is left out.
type Planned struct {
	Plan *Plan
}

// Called tells a scheduler to vote for a step: after a park, and at the beginning of an epoch.
type Called struct {
	Epoch uint64
	Wave  uint64
	Step  uint64
}

// EpochEnded tells a scheduler that its group's epoch is over: nothing of it runs on, its requests end with Err.
type EpochEnded struct {
	Epoch uint64
	Err   error
}

// AbortEpoch tells a node's expert group that an epoch is over: its communicators are aborted with Err, those still being made too.
type AbortEpoch struct {
	Epoch uint64
	Err   error
}

// GroupUp tells a node and its expert group that the node's agent has accepted the first plan of an epoch.
type GroupUp struct {
	Group string
	Epoch uint64
}

// GroupEnded tells a node that an epoch of a group is over, and why.
type GroupEnded struct {
	Group string
	Epoch uint64
	Err   error
}

// Wake tells a node's agent that a parked engine has work, or a drain wish that its last plan does not show. The agent repeats it to
// the coordinator until a Call or a plan answers.
type Wake struct {
	Engine int
	Epoch  uint64
}

// Drain asks a scheduler to take no request more, to finish those it has, and to answer its sender with Drained when a plan has
// parked the group with this wish. A drained engine stays a member and goes on voting.
type Drain struct{}

// Drained answers Drain.
type Drained struct {
	Engine int
}

// Broken tells a node's agent that a rank could not do its part of a step that others take part in.
type Broken struct {
	Epoch   uint64
	Failure *Failure
}

// Failure says which rank failed where. It is an error.
type Failure struct {
	Rank  int
	Node  string
	Step  uint64 // 0: outside a step
	Op    string // of the step's list, "" if unknown
	Layer int    // −1: outside the layers, or unknown
	Err   error
}

// Error names rank, node, step, layer, op and cause.
func (f *Failure) Error() string {
	s := fmt.Sprintf("rank %d on node %s", f.Rank, f.Node)
	if f.Step > 0 {
		s += fmt.Sprintf(": step %d", f.Step)
	}
	if f.Layer >= 0 && f.Op != "" {
		s += fmt.Sprintf(": layer %d", f.Layer)
	}
	if f.Op != "" {
		s += ": " + f.Op
	}
	return s + ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Meeting is where a rank joins a communicator.
type Meeting struct {
	Group      hal.Group
	Rendezvous hal.Rendezvous
}

// Join tells a rank to join the communicators of an epoch, those that are not nil, TP first. The rank answers its sender with
// Joined. It runs steps of this epoch only, from then on; what it was in before is aborted already and it closes it.
type Join struct {
	Epoch uint64
	TP    *Meeting // the ranks of the engine
	EP    *Meeting // the ranks that share the experts
}

// Joined answers Join.
type Joined struct {
	Rank  int
	Epoch uint64
	Comms []hal.Comm // for Abort
	Err   error
}

// Step tells a rank to run the batch of a plan. The rank answers its sender with StepDone, Refused or Busy. All ranks of an engine
// get the same pair.
type Step struct {
	Plan        *Plan
	Batch       *Batch
	Incarnation uint64 // of the sender; comes back in the answer, so that one restarted meanwhile can drop it
}

// StepDone answers a Step that was run, or failed.
type StepDone struct {
	Rank        int
	Epoch       uint64
	Step        uint64
	Incarnation uint64
	Sampled     []Sampled // of the engine's first rank: one for each Rows with Sample, in their order
	Sent        nn.Traffic
	Expanded    int   // rows that attended in the expanded form
	Err         error // the step gave nothing: its requests end
	Lost        bool  // with Err: the rank will not run another step
}

// Refused answers a Step that the rank does not run.
type Refused struct {
	Rank        int
	Epoch       uint64 // of the refused plan
	Step        uint64 // of the refused plan
	Incarnation uint64
	Reason      string
}

// Busy answers a Step that came while one runs and another waits.
type Busy struct {
	Rank        int
	Step        uint64
	Incarnation uint64
}

// RankFacts are what a rank knows once its model is loaded.
type RankFacts struct {
	Device      string // the hardware in its vendor's words
	WeightBytes int64
	Threads     int
	Layers      int // decoder layers, to name the one that went wrong
	KVBlocks    int
	ModelLen    int          // most positions of a sequence, at most what the KV blocks hold
	Progress    *nn.Progress // where in a step the rank is
	Load        *nn.Load     // rows that its experts served
}

// RankReady tells the node that a rank has its weights and can join its group.
type RankReady struct {
	Rank  int
	Facts RankFacts
}

// RankFailed tells the node that a rank could not be opened, or lost its device. It will run no step.
type RankFailed struct {
	Rank int
	Err  error
}

// EngineGone tells the gateway that an engine's scheduler has stopped for good: what it had not answered it never will.
type EngineGone struct {
	Engine int
	Err    error
}

// AbortAll asks the gateway to take no request more, to end those that run with FinishAbort, and to answer its sender with
// AllAborted when none is left.
type AbortAll struct{}

// AllAborted answers AbortAll.
type AllAborted struct{}
