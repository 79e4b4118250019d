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
	"github.com/moerack/moerack/topology"
)

// opening opens a device and loads the model onto it, on the rank's thread.
type opening = func(context.Context) (rank.Opened, error)

// opener does it for one rank of a real model.
type opener struct {
	opts   Options
	place  topology.Place
	device int // its number on the host
	memory *memory

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
	dev, err := op.opts.Open(op.device)
	if err != nil {
		return rank.Opened{}, fmt.Errorf("opening device %d: %w", op.device, err)
	}
	model, facts, err := op.load(ctx, dev)
	if err != nil {
		return rank.Opened{}, errors.Join(err, dev.Close())
	}
	reducer, _ := dev.(hal.Reducer)
	return rank.Opened{Model: model, Join: dev.Join, Close: dev.Close, Facts: facts, Reducer: reducer}, nil
}

func (op *opener) load(ctx context.Context, dev hal.Device) (*deepseek.Model, actors.RankFacts, error) {
	o, d := op.opts, dev.Describe()
	share, err := op.memory.share(dev)
	if err != nil {
		return nil, actors.RankFacts{}, err
	}
	s, err := o.fit(share, deepseek.KVBytesPerBlock(o.Config, o.BlockSize, hal.F32))
	if err != nil {
		return nil, actors.RankFacts{}, err
	}
	if s.modelLen < s.wanted && op.place.TPRank == 0 {
		o.Logger.Warn("max-model-len cut to what the KV cache holds", "wanted", s.wanted, "max_model_len", s.modelLen, "kv_blocks", s.blocks, "engine", op.place.Engine)
	}
	limits := nn.Limits{
		Rows: o.rows(), Samples: o.seats(), Sequences: o.seats(), ModelLen: s.modelLen, Blocks: s.blocks, BlockSize: o.BlockSize,
		ExpandPrompts: o.ExpandPrompts,
	}
	if err := op.check(d.Name, share, limits); err != nil {
		return nil, actors.RankFacts{}, err
	}
	form, err := o.DType.Form(o.Config)
	if err != nil {
		return nil, actors.RankFacts{}, err
	}
	reader := o.Checkpoint.NewReaderFor(form)
	op.mu.Lock()
	op.reader = reader
	op.mu.Unlock()
	model, err := deepseek.Load(ctx, dev, o.Config, op.place, reader, limits)
	if err != nil {
		return nil, actors.RankFacts{}, fmt.Errorf("loading weights: %w", err)
	}
	return model, actors.RankFacts{
		Device: d.Model, WeightBytes: reader.Bytes(), Threads: d.Threads, Layers: o.Config.NumLayers, KVBlocks: s.blocks, ModelLen: s.modelLen,
		Progress: model.Progress(), Load: model.Load(),
	}, nil
}

// check refuses sizes that do not fit into the rank's share of memory.
func (op *opener) check(device string, share int64, l nn.Limits) error {
	need := deepseek.Bytes(op.opts.Config, op.place, l)
	if need <= share {
		return nil
	}
	kv := deepseek.KVBytesPerBlock(op.opts.Config, l.BlockSize, l.KVType()) * int64(l.Blocks)
	ranks := ""
	if op.memory.ranks > 1 {
		ranks = fmt.Sprintf(" for each of the node's %d ranks", op.memory.ranks)
	}
	return fmt.Errorf("device %s: KV cache and activations need %d bytes, %d are free%s: the KV cache takes %d (num-gpu-blocks-override, "+
		"block-size), steps of max-num-batched-tokens=%d rows take %d: lower one of these", device, need, share, ranks, kv, op.opts.MaxNumBatchedTokens, need-kv)
}
