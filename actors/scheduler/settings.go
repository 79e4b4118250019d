package scheduler

// Settings are the sizes an engine works with.
type Settings struct {
	Engine              int     // number in the layout
	Epoch               uint64  // of the group; the engine serves this one only
	GroupRanks          int     // ranks of all engines of the group; more than one meet in every step
	ModelLen            int     // most tokens of prompt and answer together
	MaxNumBatchedTokens int     // most rows of a step, ≥ 1
	MaxNumSeqs          int     // most requests running at once, ≥ 1; more than a step has rows never run
	BlockSize           int     // positions in a KV block
	KVBlocks            int     // they hold at least ModelLen positions
	EOS                 []int32 // token ids that end an answer
}
