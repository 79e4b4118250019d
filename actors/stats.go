package actors

// Stats are a node's counts since its start. Encoded as JSON they are the stats file: every key is there from the start,
// zero or null.
type Stats struct {
	Steps           int64         `json:"steps"`   // the largest number of steps of an engine
	Bus             *BusStats     `json:"bus"`     // nil where nothing runs over a bus
	Engines         []EngineStats `json:"engines"` // of the node
	Ranks           []RankStats   `json:"ranks"`   // of the node
	ExchangeSteps   ExchangeSteps `json:"exchange_steps"`
	StageSteps      StageSteps    `json:"stage_steps"`
	GraphSteps      int64         `json:"graph_steps"` // steps replayed from a captured graph
	Bytes           BytesMoved    `json:"bytes"`
	PromptTokens    int64         `json:"prompt_tokens"`    // prompt tokens fed
	GeneratedTokens int64         `json:"generated_tokens"` // tokens chosen for requests that had not ended
	Seconds         float64       `json:"seconds"`          // since the node was ready
}

// BusStats count what a node's agents and its coordinator, if it has one, have sent and taken of the control plane.
type BusStats struct {
	Kind   string `json:"kind"`   // how the bus travels: "nats-inproc", "nats-tcp", "memory"
	Votes  int64  `json:"votes"`  // messages with the votes of the node's engines in a group, without copies
	Plans  int64  `json:"plans"`  // plans accepted, those that park included
	Resent int64  `json:"resent"` // copies of what was not answered in time
}

// EngineStats are the counts of one engine.
type EngineStats struct {
	Engine          int   `json:"engine"`
	Steps           int64 `json:"steps"`             // steps run, dummy ones included
	RealTokens      int64 `json:"real_tokens"`       // prompt and decode rows fed
	DummySteps      int64 `json:"dummy_steps"`       // steps without a real row
	PaddedTokens    int64 `json:"padded_tokens"`     // rows computed beside the real ones
	ExpandedTokens  int64 `json:"expanded_tokens"`   // real rows that attended in the expanded form
	Preemptions     int64 `json:"preemptions"`       // requests that lost their KV and were fed again
	PrefixHitTokens int64 `json:"prefix_hit_tokens"` // prompt tokens that were in the KV cache already
	KVBlocks        int   `json:"kv_blocks"`
	KVBlocksFree    int   `json:"kv_blocks_free"`
}

// RankStats are the facts of one rank.
type RankStats struct {
	Rank        int   `json:"rank"`
	WeightBytes int64 `json:"weight_bytes"`
	Threads     int   `json:"threads"`
}

// ExchangeSteps count steps by the exchange of their plan: of each exchange the largest count of an engine, as engines of a group
// run the same steps.
type ExchangeSteps struct {
	Local     int64 `json:"local"`
	AllGather int64 `json:"allgather"`
	AllToAll  int64 `json:"alltoall"`
	MC2       int64 `json:"mc2"`
	P2P       int64 `json:"p2p"`
}

// StageSteps count steps by the number of stages of their plan, as ExchangeSteps do.
type StageSteps struct {
	One   int64 `json:"1"`
	Two   int64 `json:"2"`
	Three int64 `json:"3"`
}

// BytesMoved are bytes of hidden states sent over the data plane.
type BytesMoved struct {
	A2E int64 `json:"a2e"` // attention to experts
	E2A int64 `json:"e2a"` // experts to attention
	TP  int64 `json:"tp"`  // tensor parallelism
}
