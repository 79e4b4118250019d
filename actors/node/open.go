package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
)

// opener opens the device of one rank and loads the model onto it.
type opener struct {
	opts  Options
	index int

	mu     sync.Mutex // guards reader
	reader *weights.Reader
}

// progress returns the bytes of weights loaded so far.
func (op *opener) progress() int64 {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.reader == nil {
		return 0
	}
	return op.reader.Bytes()
}

// open runs on the rank's thread. It returns early when ctx ends.
func (op *opener) open(ctx context.Context) (rank.Opened, error) {
	dev, err := op.opts.Open(op.index)
	if err != nil {
		return rank.Opened{}, fmt.Errorf("opening device %d: %w", op.index, err)
	}
	model, facts, err := op.load(ctx, dev)
	if err != nil {
		return rank.Opened{}, errors.Join(err, dev.Close())
	}
	return rank.Opened{Model: model, Close: dev.Close, Facts: facts}, nil
}

func (op *opener) load(ctx context.Context, dev hal.Device) (*deepseek.Model, actors.RankFacts, error) {
	o, d := op.opts, dev.Describe()
	mem, err := dev.Memory()
	if err != nil {
		return nil, actors.RankFacts{}, fmt.Errorf("asking device %s for its memory: %w", d.Name, err)
	}
	s, err := o.fit(mem.Free, deepseek.KVBytesPerBlock(o.Config, o.BlockSize))
	if err != nil {
		return nil, actors.RankFacts{}, err
	}
	if s.modelLen < s.wanted {
		o.Logger.Warn("max-model-len cut to what the KV cache holds", "wanted", s.wanted, "max_model_len", s.modelLen, "kv_blocks", s.blocks)
	}
	reader := o.Checkpoint.NewReader()
	op.mu.Lock()
	op.reader = reader
	op.mu.Unlock()
	limits := nn.Limits{
		Rows: o.MaxNumBatchedTokens, Samples: o.seats(), Sequences: o.seats(), ModelLen: s.modelLen, Blocks: s.blocks, BlockSize: o.BlockSize,
	}
	if need := deepseek.Bytes(o.Config, limits); need > mem.Free {
		kv := deepseek.KVBytesPerBlock(o.Config, o.BlockSize) * int64(s.blocks)
		return nil, actors.RankFacts{}, fmt.Errorf("device %s: KV cache and activations need %d bytes, %d are free: the KV cache takes %d (num-gpu-blocks-override, "+
			"block-size), steps of max-num-batched-tokens=%d rows take %d: lower one of these", d.Name, need, mem.Free, kv, o.MaxNumBatchedTokens, need-kv)
	}
	model, err := deepseek.Load(ctx, dev, o.Config, reader, limits)
	if err != nil {
		return nil, actors.RankFacts{}, fmt.Errorf("loading weights: %w", err)
	}
	if unused := o.Checkpoint.Unused(o.Config.NumLayers); len(unused) > 0 {
		o.Logger.Warn("the checkpoint has tensors that no layer uses", "tensors", len(unused), "first", unused[:min(3, len(unused))])
	}
	return model, actors.RankFacts{
		Device: d.Model, WeightBytes: reader.Bytes(), Threads: 1, Layers: o.Config.NumLayers, KVBlocks: s.blocks, ModelLen: s.modelLen,
	}, nil
}
