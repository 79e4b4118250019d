package deepseek

import (
	"context"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/topology"
)

// KVBytesPerBlock returns the bytes that one KV block of an element type takes over all layers, on every rank.
func KVBytesPerBlock(c *config.Config, blockSize int, kv hal.DType) int64 {
	return int64(c.NumLayers) * int64(blockSize) * int64(c.KVLoraRank+c.QKRopeHeadDim) * int64(kv.Size())
}

// Load maps the weights that a rank at place p needs from r onto dev, in the reader's form, and allocates buffers for steps within
// l, its rows rounded up to a multiple of p.TP. The checkpoint must stay open until Close. All faults of the checkpoint come at
// once, by tensor name; after an error, or when ctx ends, nothing is held but what the checkpoint has converted. Where p says that
// there are other ranks, Join comes before the first step.
func Load(ctx context.Context, dev hal.Device, c *config.Config, p topology.Place, r *weights.Reader, l nn.Limits) (*Model, error) {
	if l.Rows < 1 || l.Samples < 1 || l.Sequences < 1 || l.ModelLen < 1 || l.Blocks < 1 || l.BlockSize < 1 {
		return nil, fmt.Errorf("deepseek: limits %+v: all must be at least 1", l)
	}
	if l.ModelLen > c.MaxPositionEmbeddings {
		return nil, fmt.Errorf("deepseek: model length %d: the model has at most %d positions (max_position_embeddings)", l.ModelLen, c.MaxPositionEmbeddings)
	}
	sh, err := newShare(c, p)
	if err != nil {
		return nil, err
	}
	st, err := dev.NewStream()
	if err != nil {
		return nil, err
	}
	m := newModel(c, sh, l)
	m.alloc, m.st = nn.Allocator{Device: dev}, st
	if err := m.fill(ctx, r); err != nil {
		m.alloc.Free()
		return nil, err
	}
	dev.Pulse(m.pulse)
	return m, nil
}

// newModel makes a model that holds nothing yet.
func newModel(c *config.Config, sh share, l nn.Limits) *Model {
	l.Rows = topology.PadTo([]int{l.Rows}, sh.place.TP)
	return &Model{
		cfg: c, share: sh, limits: l, layers: make([]layer, c.NumLayers), load: nn.NewLoad(sh.experts.from, sh.experts.len()),
		unfit: checkJoined(sh.place, nil, nil),
		list:  Ops(c, sh.place, nn.Step{Exchange: sh.exchange(), Stages: 1}),
	}
}

// fill loads the weights and makes the buffers.
func (m *Model) fill(ctx context.Context, r *weights.Reader) error {
	c := m.cfg
	ld := newLoader(c, m.share, r.Form(), &m.alloc, r, m.st)
	if err := m.loadWeights(ctx, ld); err != nil {
		return err
	}
	if err := ld.Err(); err != nil { // before buffers are made of sizes that the weights belie
		return err
	}
	m.allocate(&m.alloc)
	m.host = newOutputs(m)
	if err := m.alloc.Err(); err != nil {
		return err
	}
	m.st.PutFloat32(m.rope, nn.RopeTable(c, m.limits.ModelLen))
	return m.st.Synchronize(ctx)
}

// loadWeights asks for every tensor, in the order of the network.
func (m *Model) loadWeights(ctx context.Context, ld *loader) error {
	h := m.cfg.HiddenSize
	m.embed = ld.rows(ld.unquantized("model.embed_tokens.weight", m.share.vocab.n, h), m.share.vocab)
	for i := range m.layers {
		m.layers[i] = ld.layer(ctx, i)
		if ctx.Err() != nil {
			return fmt.Errorf("layer %d of %d: %w", i, len(m.layers), context.Cause(ctx))
		}
	}
	m.norm = ld.Vector("model.norm.weight", h)
	m.head = ld.rows(ld.matrix("lm_head.weight", m.share.vocab.n, h), m.share.vocab)
	return nil
}

// allocate makes the KV cache, the inputs and the activations.
func (m *Model) allocate(a *nn.Allocator) {
	c, l := m.cfg, m.limits
	for i := range m.layers {
		m.layers[i].cache = a.KV(l.KVType(), l.Blocks*l.BlockSize, c.KVLoraRank+c.QKRopeHeadDim)
	}
	m.rope = a.F32(l.ModelLen, c.QKRopeHeadDim)
	m.inputs = nn.NewInputBuffers(a, l, kv.BlocksFor(l.ModelLen, l.BlockSize))
	m.act = newActivations(a, c, m.share, l)
	if m.share.experts.n > 0 {
		m.exchange = m.newExchange(a)
	}
}

// Bytes returns the device memory that a model of these limits allocates beside its weights: KV cache, inputs, activations, and
// the exchange's buffers. It is 0 at a place that Load refuses.
func Bytes(c *config.Config, p topology.Place, l nn.Limits) int64 {
	sh, err := newShare(c, p)
	if err != nil {
		return 0
	}
	a := &nn.Allocator{}
	newModel(c, sh, l).allocate(a)
	return a.Bytes()
}

// Close frees what the model holds on its device; the device stays open, and so do the communicators.
func (m *Model) Close() { m.alloc.Free() }
