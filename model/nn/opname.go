package nn

// OpName names an entry of a step's list.
type OpName string

// The entries, in the order of a step.
const (
	OpEmbed           OpName = "embed"
	OpEmbedReduce     OpName = "embed all-reduce"
	OpAttention       OpName = "attention"
	OpAttentionReduce OpName = "attention all-reduce"
	OpMLP             OpName = "mlp"
	OpMLPReduce       OpName = "mlp all-reduce"
	OpRoute           OpName = "route"
	OpDispatch        OpName = "dispatch" // a2e of an exchange without communication
	OpA2E             OpName = "a2e"
	OpShared          OpName = "shared experts"
	OpSharedReduce    OpName = "shared experts reduce-scatter"
	OpExperts         OpName = "experts"
	OpE2A             OpName = "e2a"
	OpCombine         OpName = "combine"
	OpExpertsReduce   OpName = "experts all-reduce"
	OpGather          OpName = "rows all-gather"
	OpLogits          OpName = "logits"
	OpLogitsGather    OpName = "logits gather"
	OpSample          OpName = "sample"
	OpTokens          OpName = "tokens"
)

// Meets reports whether the op waits for other ranks: those of the group in a2e and e2a, else those of the engine.
func (n OpName) Meets() bool {
	switch n {
	case OpEmbedReduce, OpAttentionReduce, OpMLPReduce, OpA2E, OpSharedReduce, OpE2A, OpExpertsReduce, OpGather, OpLogitsGather, OpTokens:
		return true
	default:
		return false
	}
}
