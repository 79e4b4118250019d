package nn

import "github.com/moerack/moerack/topology"

// Step is what a plan says to the ranks that run it; the same on all of them.
type Step struct {
	Number   uint64
	Exchange topology.Exchange
	Stages   int // slices of the batch that are pipelined, 1 for none
}

// Traffic is bytes of hidden states that a rank sent to other ranks.
type Traffic struct {
	A2E int64 // attention to experts
	E2A int64 // experts to attention
	TP  int64 // tensor parallelism
}
