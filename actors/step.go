package actors

import "github.com/moerack/moerack/model/sample"

// Vote is an engine's commitment to the shape of its next step: the batch is built, and its rows are what the plan will say.
type Vote struct {
	Term   uint64 // of the coordinator's leadership
	Epoch  uint64 // of the group's membership
	Wave   uint64 // number of the run of steps between two parks
	Step   uint64
	Engine int
	Rows   int // real rows of the batch
}

// Action is what a plan makes all engines do.
type Action uint8

// The actions. The zero value is none.
const (
	Run  Action = iota + 1 // run the step
	Park                   // no one has work: the step is not run, engines sleep until a Wake is answered
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

// Exchange is the way from attention to experts and back in a step's MoE layers.
type Exchange string

// ExchangeLocal is the exchange of a group that does not share its experts: no communication.
const ExchangeLocal Exchange = "local"

// Plan is the one decision of a step, the same for all engines of the group.
type Plan struct {
	Term     uint64
	Epoch    uint64
	Wave     uint64
	Step     uint64
	Action   Action
	Rows     []int // real rows of each engine
	PadTo    int   // rows that every engine computes
	Exchange Exchange
	Stages   int // slices of the batch that are pipelined
}

// Rows is a run of consecutive tokens of one request in a step.
type Rows struct {
	Request  RequestID
	Tokens   []int32       // token ids, at positions Position, Position+1, …
	Position int           // of the first token
	Blocks   []int32       // the request's KV blocks, in order; they cover all positions so far
	Sample   bool          // choose the token that follows the last row
	Sampling sample.Params // used if Sample
}

// Batch is what an engine runs in a step. Its number of tokens is the Rows of its vote.
type Batch struct {
	Rows []Rows
}

// Tokens returns the number of real rows.
func (b *Batch) Tokens() int {
	n := 0
	for _, r := range b.Rows {
		n += len(r.Tokens)
	}
	return n
}

// Sampled is the token chosen for one request of a step.
type Sampled struct {
	Request  RequestID
	Token    int32
	Logprobs *sample.Logprobs // nil unless asked for
	Err      error            // the logits were not finite: the request ends
}
