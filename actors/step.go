package actors

import (
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/topology"
)

// Vote is an engine's commitment to the shape of a step: the batch is built, and its rows are what the plan will say. The
// scheduler gives it to its node's agent.
type Vote struct {
	Epoch  uint64 // of the group's membership
	Step   uint64
	Engine int
	Rows   int  // real rows of the batch
	Drain  bool // the engine takes no request more and wants a park once it has none
	Queue  int  // requests that the step after this one could take, as far as is known
}

// Action is what a plan makes all engines do.
type Action uint8

// The actions. The zero value is none.
const (
	Run  Action = iota + 1 // run the step
	Park                   // no one has work: the step is not run, engines sleep until a Wake is answered by a Call
)

// String returns the action's name.
func (a Action) String() string {
	switch a {
	case Run:
		return "run"
	case Park:
		return "park"
	default:
		return "none"
	}
}

// Plan is the one decision of a step, the same for all engines of the group. A plan that was published is never changed.
type Plan struct {
	Group    string
	Term     uint64 // of the coordinator's leadership
	Epoch    uint64
	Wave     uint64 // number of the run of steps between two parks
	Step     uint64
	Action   Action
	Members  []int  // engines of the epoch, ascending
	Rows     []int  // real rows of each member, as voted
	Drain    []bool // wish of each member, as voted
	PadTo    int    // rows that every engine computes
	Exchange topology.Exchange
	Stages   int    // slices of the batch that are pipelined
	Hash     uint64 // of all but the term: two plans of one (epoch, step) must not differ
}

// Placeholder stands in Rows.Tokens for the token that the step before samples for the same request. The rank fills it in.
const Placeholder = -1

// Rows is a run of consecutive tokens of one request in a step.
type Rows struct {
	Request  RequestID
	Tokens   []int32       // token ids, at positions Position, Position+1, …; the only one of a decode row may be Placeholder
	Position int           // of the first token
	Prompt   bool          // tokens of the prompt as it was submitted; such runs stand behind all others
	Blocks   []int32       // the request's KV blocks, in order; they cover all positions so far
	Sample   bool          // choose the token that follows the last row
	Sampling sample.Params // used if Sample
	Ends     []int32       // tokens that end the request: where a Placeholder turns out to be one, the row runs as padding
}

// Sampled is the token chosen for one request of a step.
type Sampled struct {
	Request  RequestID
	Token    int32
	Logprobs *sample.Logprobs // nil unless asked for
	Err      error            // the logits were not finite: the request ends
	Masked   bool             // the row ran as padding: its request had ended before the step began
}
