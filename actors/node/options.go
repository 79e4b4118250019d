package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/token"
	"github.com/moerack/moerack/model/weights"
)

// Options describe a node. Start from Defaults.
type Options struct {
	Name string // of the node, in messages about its ranks
	// Open opens a device by its local index; the rank's own thread calls it.
	Open   func(index int) (hal.Device, error)
	Config *config.Config
	// Checkpoint is read in place as long as the node lives: the caller closes it after Close returned nil, and not at all
	// if Start or Close gave up waiting.
	Checkpoint   *weights.Checkpoint
	Tokenizer    *token.Tokenizer // nil: prompts are token ids and answers have no text
	TokenizerErr error            // why there is no tokenizer, for refusals

	MaxModelLen         int // most tokens of prompt and answer; 0: max_position_embeddings; cut to what the KV blocks hold
	MaxNumBatchedTokens int // most rows of a step, ≥ 1
	MaxNumSeqs          int // most requests running at once, ≥ 1
	BlockSize           int // positions in a KV block, ≥ 1
	KVBlocks            int // 0: what a quarter of the device's free memory holds, at most MaxNumSeqs requests of full length

	Logger       *slog.Logger  // nil: silence
	StartTimeout time.Duration // Start gives up when loading makes no progress for so long

	// load stands in for Open and Checkpoint; not exported, for tests.
	load func(index int) (open func(context.Context) (rank.Opened, error), progress func() int64)
}

// Defaults returns the options that are used when nobody says otherwise; Open, Config and Checkpoint have none.
func Defaults() Options {
	return Options{Name: "local", MaxNumBatchedTokens: 2048, MaxNumSeqs: 64, BlockSize: 16, StartTimeout: 300 * time.Second}
}

// Validate returns all faults of o, joined, each with the legal values.
func (o Options) Validate() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Config == nil {
		bad("Config is missing: load it with config.Load")
	}
	if o.load == nil && o.Open == nil {
		bad("Open is missing: give a function that opens a device")
	}
	if o.load == nil && o.Checkpoint == nil {
		bad("Checkpoint is missing: open it with weights.Open")
	}
	if o.Name == "" {
		bad("node-name is empty: must have at least one character")
	}
	if c := o.Config; c != nil && (o.MaxModelLen < 0 || o.MaxModelLen > c.MaxPositionEmbeddings) {
		bad("max-model-len=%d: must be 1 … %d (max_position_embeddings of the model), or 0 for that", o.MaxModelLen, c.MaxPositionEmbeddings)
	}
	if o.MaxModelLen == 1 {
		bad("max-model-len=1: must be ≥ 2, for a prompt and an answer of one token each")
	}
	if o.MaxNumBatchedTokens < 1 || o.MaxNumBatchedTokens > math.MaxInt32 {
		bad("max-num-batched-tokens=%d: must be 1 … %d", o.MaxNumBatchedTokens, math.MaxInt32)
	}
	if o.MaxNumSeqs < 1 || o.MaxNumSeqs > math.MaxInt32 {
		bad("max-num-seqs=%d: must be 1 … %d", o.MaxNumSeqs, math.MaxInt32)
	}
	if o.BlockSize < 1 || o.BlockSize > math.MaxInt32 {
		bad("block-size=%d: must be 1 … %d", o.BlockSize, math.MaxInt32)
	}
	if o.KVBlocks < 0 {
		bad("num-gpu-blocks-override=%d: must be ≥ 1, or 0 to take a quarter of free memory", o.KVBlocks)
	}
	if o.BlockSize > 0 && o.KVBlocks > math.MaxInt32/o.BlockSize {
		bad("num-gpu-blocks-override=%d: must be at most %d with block-size=%d (positions are numbered with 32 bits)", o.KVBlocks, math.MaxInt32/o.BlockSize, o.BlockSize)
	}
	if o.KVBlocks == 1 && o.BlockSize == 1 {
		bad("num-gpu-blocks-override=1: must be ≥ 2 with block-size=1, for a prompt and an answer of one token each")
	}
	if o.StartTimeout <= 0 {
		bad("start-timeout=%s: must be above 0", o.StartTimeout)
	}
	return errors.Join(faults...)
}
