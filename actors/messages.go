package actors

import "fmt"

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

// Step tells a rank to run the batch of a plan. The rank answers its sender with StepDone, Refused or Busy.
type Step struct {
	Plan        Plan
	Batch       *Batch
	Incarnation uint64 // of the sender; comes back in the answer, so that one restarted meanwhile can drop it
}

// StepDone answers a Step that was run, or failed.
type StepDone struct {
	Epoch       uint64
	Step        uint64
	Incarnation uint64
	Sampled     []Sampled // one for each Rows with Sample, in their order
	Err         error     // the step gave nothing: its requests end
	Lost        bool      // with Err: the rank will not run another step
}

// Refused answers a Step that the rank does not run.
type Refused struct {
	Epoch       uint64 // the rank's own
	Step        uint64 // of the refused plan
	Incarnation uint64
	Reason      string
}

// Error returns which step was refused and why.
func (r *Refused) Error() string {
	return fmt.Sprintf("step %d refused in epoch %d: %s", r.Step, r.Epoch, r.Reason)
}

// Busy answers a Step that came while one runs and another waits.
type Busy struct {
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
	ModelLen    int // most positions of a sequence, at most what the KV blocks hold
}

// RankReady tells the node that a rank can run steps.
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
