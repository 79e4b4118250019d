package deepseek

import (
	"context"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
)

// loader reads a rank's share of the tensors. What the form says holds for the linear layers. In Int8 the embedding and the
// up-projection of keys, whose scales would belong to what is summed over, are BF16; the router, the norms and the router's bias are
// as stored in every form.
type loader struct {
	*nn.Loader
	c     *config.Config
	share share
	form  weights.Form
}

func newLoader(c *config.Config, sh share, f weights.Form, a *nn.Allocator, s nn.Source, st hal.Stream) *loader {
	if c.Quantization.W8A8 { // each tensor is stored in the form that it has there
		f = weights.Stored
	}
	return &loader{nn.NewLoader(a, s, st), c, sh, f}
}

// matrix is a linear layer.
func (ld *loader) matrix(name string, out, in int) weights.Matrix {
	return weights.Matrix{Name: name, Out: out, In: in, Form: ld.form}
}

// unquantized is a matrix of floating-point numbers in every form.
func (ld *loader) unquantized(name string, out, in int) weights.Matrix {
	m := ld.matrix(name, out, in)
	if m.Form == weights.Int8 {
		m.Form = weights.BFloat16
	}
	return m
}

// rows loads a span of a matrix's rows: the outputs that this rank computes. // (rows, in)
func (ld *loader) rows(m weights.Matrix, s span) hal.Weight {
	if s.len() == s.n {
		return ld.Linear(m)
	}
	return ld.Rows(m, s.from, s.to)
}

// columns loads a span of a matrix's columns: what it makes of the inputs that this rank has. // (out, columns)
func (ld *loader) columns(m weights.Matrix, s span) hal.Weight {
	if s.len() == s.n {
		return ld.Linear(m)
	}
	return ld.Columns(m, s.from, s.to)
}

// heads loads rows of each of this rank's heads. // (n·(to-from), in)
func (ld *loader) heads(m weights.Matrix) headRows {
	w, h := ld.Heads(m, ld.share.heads.from, ld.share.heads.to)
	return headRows{w, h.Size, h.From, h.To}
}

func (ld *loader) layer(ctx context.Context, i int) layer {
	c, p := ld.c, fmt.Sprintf("model.layers.%d.", i)
	l := layer{
		inputNorm: ld.Vector(p+"input_layernorm.weight", c.HiddenSize),
		attn:      ld.attention(p + "self_attn."),
		postNorm:  ld.Vector(p+"post_attention_layernorm.weight", c.HiddenSize),
	}
	if c.IsMoE(i) {
		l.moe = ld.moe(ctx, p+"mlp.")
	} else {
		l.dense = ld.mlp(p+"mlp.", ld.share.dense)
	}
	return l
}

func (ld *loader) attention(p string) attention {
	c, heads := ld.c, ld.share.heads
	a := attention{
		kvDown: ld.Linear(ld.matrix(p+"kv_a_proj_with_mqa.weight", c.KVLoraRank+c.QKRopeHeadDim, c.HiddenSize)),
		kvNorm: ld.Vector(p+"kv_a_layernorm.weight", c.KVLoraRank),
		out:    ld.columns(ld.matrix(p+"o_proj.weight", c.HiddenSize, heads.n*c.VHeadDim), heads.times(c.VHeadDim)),
	}
	a.kUp, a.vUp = ld.kvUp(p)
	if c.QLoraRank == 0 {
		a.q = ld.rows(ld.matrix(p+"q_proj.weight", heads.n*c.QKHeadDim(), c.HiddenSize), heads.times(c.QKHeadDim()))
		return a
	}
	a.qDown = ld.Linear(ld.matrix(p+"q_a_proj.weight", c.QLoraRank, c.HiddenSize))
	a.qNorm = ld.Vector(p+"q_a_layernorm.weight", c.QLoraRank)
	a.q = ld.rows(ld.matrix(p+"q_b_proj.weight", heads.n*c.QKHeadDim(), c.QLoraRank), heads.times(c.QKHeadDim()))
	return a
}

// Names of the up-projection of the latent, behind those of their layer: as published, and in two.
const (
	kvUpName = "kv_b_proj.weight" // (n·(nope+value), latent): for each head the rows of its keys, then of its values
	kUpName  = "k_b_proj.weight"  // (n·nope, latent)
	vUpName  = "v_b_proj.weight"  // (n·value, latent)
)

// kvUp loads the up-projections of keys and values.
func (ld *loader) kvUp(p string) (k, v headRows) {
	c, n := ld.c, ld.share.heads.n
	nope, val := c.QKNopeHeadDim, c.VHeadDim
	if c.Quantization.W8A8 {
		key, value := ld.unquantized(p+kUpName, n*nope, c.KVLoraRank), ld.matrix(p+vUpName, n*val, c.KVLoraRank)
		key.Heads, value.Heads = weights.Heads{Size: nope, To: nope}, weights.Heads{Size: val, To: val}
		return ld.heads(key), ld.heads(value)
	}
	key, value := ld.unquantized(p+kvUpName, n*(nope+val), c.KVLoraRank), ld.matrix(p+kvUpName, n*(nope+val), c.KVLoraRank)
	key.Heads, value.Heads = weights.Heads{Size: nope + val, To: nope}, weights.Heads{Size: nope + val, From: nope, To: nope + val}
	return ld.heads(key), ld.heads(value)
}

func (ld *loader) mlp(p string, width span) *mlp {
	h := ld.c.HiddenSize
	return &mlp{
		gate: ld.rows(ld.matrix(p+"gate_proj.weight", width.n, h), width),
		up:   ld.rows(ld.matrix(p+"up_proj.weight", width.n, h), width),
		down: ld.columns(ld.matrix(p+"down_proj.weight", h, width.n), width),
	}
}

// moe loads router and experts, as many as there is time for before ctx ends.
func (ld *loader) moe(ctx context.Context, p string) *moe {
	c := ld.c
	w := &moe{router: ld.Linear(weights.Matrix{Name: p + "gate.weight", Out: c.NumRoutedExperts, In: c.HiddenSize})}
	if c.TopKMethod == config.NoAuxTC {
		w.bias = ld.Vector(p+"gate.e_score_correction_bias", c.NumRoutedExperts)
	}
	for e := ld.share.experts.from; e < ld.share.experts.to && ctx.Err() == nil; e++ {
		x := ld.mlp(fmt.Sprintf("%sexperts.%d.", p, e), ld.share.expertWidth)
		w.gate, w.up, w.down = append(w.gate, x.gate), append(w.up, x.up), append(w.down, x.down)
	}
	if c.NumSharedExperts > 0 {
		w.shared = ld.mlp(p+"shared_experts.", ld.share.shared)
	}
	return w
}
