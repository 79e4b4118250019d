package deepseek

import (
	"context"
	"errors"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
)

// KVBytesPerBlock returns the bytes that one KV block takes over all layers.
func KVBytesPerBlock(c *config.Config, blockSize int) int64 {
	return int64(c.NumLayers) * int64(blockSize) * int64(c.KVLoraRank+c.QKRopeHeadDim) * int64(hal.F32.Size())
}

// Load maps the weights that this rank needs from r onto dev and allocates buffers for steps within l. The checkpoint must
// stay open until Close. All faults of the checkpoint come at once, by tensor name; after an error, or when ctx ends, nothing is
// held.
func Load(ctx context.Context, dev hal.Device, c *config.Config, r *weights.Reader, l nn.Limits) (*Model, error) {
	if l.Rows < 1 || l.Samples < 1 || l.Sequences < 1 || l.ModelLen < 1 || l.Blocks < 1 || l.BlockSize < 1 {
		return nil, fmt.Errorf("deepseek: limits %+v: all must be at least 1", l)
	}
	if l.ModelLen > c.MaxPositionEmbeddings {
		return nil, fmt.Errorf("deepseek: model length %d: the model has at most %d positions (max_position_embeddings)", l.ModelLen, c.MaxPositionEmbeddings)
	}
	st, err := dev.NewStream()
	if err != nil {
		return nil, err
	}
	m := &Model{cfg: c, limits: l, alloc: nn.Allocator{Device: dev}, st: st}
	ld := nn.NewLoader(&m.alloc, r, st)
	m.embed = ld.Linear("model.embed_tokens.weight", c.VocabSize, c.HiddenSize)
	m.layers = make([]layer, c.NumLayers)
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			m.alloc.Free()
			return nil, fmt.Errorf("layer %d of %d: %w", i, c.NumLayers, context.Cause(ctx))
		}
		m.layers[i] = loadLayer(ld, c, i)
	}
	m.norm = ld.Vector("model.norm.weight", c.HiddenSize)
	m.head = ld.Linear("lm_head.weight", c.VocabSize, c.HiddenSize)
	if err := ld.Err(); err != nil { // before buffers are made of sizes that the weights belie
		m.alloc.Free()
		return nil, err
	}
	m.allocate(&m.alloc)
	m.host = newOutputs(c, l)
	if err := m.alloc.Err(); err != nil {
		m.alloc.Free()
		return nil, err
	}
	st.PutFloat32(m.rope, nn.RopeTable(c, l.ModelLen))
	if err := st.Synchronize(ctx); err != nil {
		m.alloc.Free()
		return nil, err
	}
	return m, nil
}

// allocate makes the KV cache, the inputs and the activations.
func (m *Model) allocate(a *nn.Allocator) {
	c, l := m.cfg, m.limits
	for i := range m.layers {
		m.layers[i].cache = a.F32(l.Blocks*l.BlockSize, c.KVLoraRank+c.QKRopeHeadDim)
	}
	m.rope = a.F32(l.ModelLen, c.QKRopeHeadDim)
	m.inputs = nn.NewInputBuffers(a, l, kv.BlocksFor(l.ModelLen, l.BlockSize))
	m.act = newActivations(a, c, l)
}

// Bytes returns the device memory that a model of these limits allocates beside its weights: KV cache, inputs, activations.
func Bytes(c *config.Config, l nn.Limits) int64 {
	m := &Model{cfg: c, limits: l, layers: make([]layer, c.NumLayers)}
	a := &nn.Allocator{}
	m.allocate(a)
	return a.Bytes()
}

// Close frees what the model holds on its device; the device stays open.
func (m *Model) Close() { m.alloc.Free() }

func loadLayer(ld *nn.Loader, c *config.Config, i int) layer {
	p := fmt.Sprintf("model.layers.%d.", i)
	l := layer{
		inputNorm: ld.Vector(p+"input_layernorm.weight", c.HiddenSize),
		attn:      loadAttention(ld, c, p+"self_attn."),
		postNorm:  ld.Vector(p+"post_attention_layernorm.weight", c.HiddenSize),
	}
	if c.IsMoE(i) {
		l.moe = loadMoE(ld, c, p+"mlp.")
	} else {
		l.dense = loadMLP(ld, c, p+"mlp.", c.IntermediateSize)
	}
	return l
}

func loadAttention(ld *nn.Loader, c *config.Config, p string) attention {
	heads := c.NumHeads * c.QKHeadDim()
	a := attention{
		kvDown: ld.Linear(p+"kv_a_proj_with_mqa.weight", c.KVLoraRank+c.QKRopeHeadDim, c.HiddenSize),
		kvNorm: ld.Vector(p+"kv_a_layernorm.weight", c.KVLoraRank),
		kvUp:   ld.Linear(p+"kv_b_proj.weight", c.NumHeads*(c.QKNopeHeadDim+c.VHeadDim), c.KVLoraRank),
		out:    ld.Linear(p+"o_proj.weight", c.HiddenSize, c.NumHeads*c.VHeadDim),
	}
	if c.QLoraRank == 0 {
		a.q = ld.Linear(p+"q_proj.weight", heads, c.HiddenSize)
		return a
	}
	a.qDown = ld.Linear(p+"q_a_proj.weight", c.QLoraRank, c.HiddenSize)
	a.qNorm = ld.Vector(p+"q_a_layernorm.weight", c.QLoraRank)
	a.q = ld.Linear(p+"q_b_proj.weight", heads, c.QLoraRank)
	return a
}

func loadMLP(ld *nn.Loader, c *config.Config, p string, width int) *mlp {
	return &mlp{
		gate: ld.Linear(p+"gate_proj.weight", width, c.HiddenSize),
		up:   ld.Linear(p+"up_proj.weight", width, c.HiddenSize),
		down: ld.Linear(p+"down_proj.weight", c.HiddenSize, width),
	}
}

func loadMoE(ld *nn.Loader, c *config.Config, p string) *moe {
	w := &moe{router: ld.Linear(p+"gate.weight", c.NumRoutedExperts, c.HiddenSize)}
	if c.TopKMethod == config.NoAuxTC {
		w.bias = ld.Vector(p+"gate.e_score_correction_bias", c.NumRoutedExperts)
	}
	for e := range c.NumRoutedExperts {
		x := loadMLP(ld, c, fmt.Sprintf("%sexperts.%d.", p, e), c.MoEIntermediateSize)
		w.gate, w.up, w.down = append(w.gate, x.gate), append(w.up, x.up), append(w.down, x.down)
	}
	if c.NumSharedExperts > 0 {
		w.shared = loadMLP(ld, c, p+"shared_experts.", c.MoEIntermediateSize*c.NumSharedExperts)
	}
	return w
}

// failed waits for the device and says where the step broke off.
func (m *Model) failed(ctx context.Context, where string) error {
	if err := m.st.Synchronize(ctx); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return errors.New(where + ": the stream reported an error and then none")
}
