package synth

import (
	"fmt"
	"math"

	"github.com/moerack/moerack/model/weights"
)

// fill is what a tensor holds.
type fill uint8

const (
	normal fill = iota // numbers with mean 0
	ones
	scales // of the FP8 matrix before it, known when that is written
)

// tensor is one that will be stored.
type tensor struct {
	name string
	// numbers is the name of the tensor whose numbers these are: its own but for copies.
	numbers    string
	rows, cols int // cols 0: a vector of rows numbers
	element    weights.DType
	fill       fill
	deviation  float64 // standard, of normal
}

// count returns the number of elements.
func (t *tensor) count() int64 { return int64(t.rows) * int64(max(t.cols, 1)) }

func (t *tensor) bytes() int64 { return t.count() * size(t.element) }

func (t *tensor) shape() []int {
	if t.cols == 0 {
		return []int{t.rows}
	}
	return []int{t.rows, t.cols}
}

// lister makes the list of a network's tensors in the order of the forward pass.
type lister struct {
	c     *modelConfig
	dtype DType
	list  []tensor
}

// list returns what a checkpoint holds.
func list(c *modelConfig, d DType) []tensor {
	l := &lister{c: c, dtype: d}
	l.embedding("model.embed_tokens.weight")
	for i := range c.NumHiddenLayers {
		l.layer(fmt.Sprintf("model.layers.%d.", i), i >= c.FirstKDenseReplace)
	}
	l.norm("model.norm.weight", c.HiddenSize)
	l.head("lm_head.weight")
	for i := range c.NumNextNPredictLayers {
		l.mtp(fmt.Sprintf("model.layers.%d.", c.NumHiddenLayers+i))
	}
	return l.list
}

// plain is the type of what FP8 leaves alone.
func (l *lister) plain() weights.DType {
	if l.dtype == Float32 {
		return weights.F32
	}
	return weights.BF16
}

func (l *lister) norm(name string, n int) {
	l.list = append(l.list, tensor{name: name, numbers: name, rows: n, element: l.plain(), fill: ones})
}

// biasDeviation is small against the differences between experts' scores, so that a bias moves close decisions only.
const biasDeviation = 0.01

func (l *lister) bias(name string, n int) {
	l.list = append(l.list, tensor{name: name, numbers: name, rows: n, element: weights.F32, deviation: biasDeviation})
}

// matrix adds a weight that FP8 leaves alone. Its products have the size of its input's elements: the sum of in products of
// numbers of deviation in^−½ with numbers of size 1. (Published models begin with 0.02, which is that for 2500 inputs.)
func (l *lister) matrix(name string, out, in int) {
	l.list = append(l.list, tensor{name: name, numbers: name, rows: out, cols: in, element: l.plain(), deviation: 1 / math.Sqrt(float64(in))})
}

// linear adds a weight that FP8 quantizes.
func (l *lister) linear(name string, out, in int) {
	l.matrix(name, out, in)
	if l.dtype == FP8 {
		l.list[len(l.list)-1].element = weights.F8E4M3
		l.list = append(l.list, tensor{name: name + "_scale_inv", rows: blocks(out), cols: blocks(in), element: weights.F32, fill: scales})
	}
}

func blocks(n int) int { return (n + block - 1) / block }

// embedding has elements of size 1: what every layer adds to.
func (l *lister) embedding(name string) {
	l.list = append(l.list, tensor{name: name, numbers: "model.embed_tokens.weight", rows: l.c.VocabSize, cols: l.c.HiddenSize, element: l.plain(), deviation: 1})
}

// headGain is the standard deviation of the logits: the first token stands clear of the others, and is not certain.
const headGain = 2

func (l *lister) head(name string) {
	l.list = append(l.list, tensor{
		name: name, numbers: "lm_head.weight", rows: l.c.VocabSize, cols: l.c.HiddenSize, element: l.plain(),
		deviation: headGain / math.Sqrt(float64(l.c.HiddenSize)),
	})
}

func (l *lister) layer(p string, experts bool) {
	c := l.c
	l.norm(p+"input_layernorm.weight", c.HiddenSize)
	l.attention(p + "self_attn.")
	l.norm(p+"post_attention_layernorm.weight", c.HiddenSize)
	if !experts {
		l.mlp(p+"mlp.", c.IntermediateSize)
		return
	}
	l.matrix(p+"mlp.gate.weight", c.NRoutedExperts, c.HiddenSize)
	if c.TopKMethod == "noaux_tc" {
		l.bias(p+"mlp.gate.e_score_correction_bias", c.NRoutedExperts)
	}
	for e := range c.NRoutedExperts {
		l.mlp(fmt.Sprintf("%smlp.experts.%d.", p, e), c.MoEIntermediateSize)
	}
	l.mlp(p+"mlp.shared_experts.", c.NSharedExperts*c.MoEIntermediateSize)
}

func (l *lister) attention(p string) {
	c := l.c
	queries := c.NumAttentionHeads * (c.QKNopeHeadDim + c.QKRopeHeadDim)
	if c.QLoraRank == nil {
		l.linear(p+"q_proj.weight", queries, c.HiddenSize)
	} else {
		l.linear(p+"q_a_proj.weight", *c.QLoraRank, c.HiddenSize)
		l.norm(p+"q_a_layernorm.weight", *c.QLoraRank)
		l.linear(p+"q_b_proj.weight", queries, *c.QLoraRank)
	}
	l.linear(p+"kv_a_proj_with_mqa.weight", c.KVLoraRank+c.QKRopeHeadDim, c.HiddenSize)
	l.norm(p+"kv_a_layernorm.weight", c.KVLoraRank)
	l.linear(p+"kv_b_proj.weight", c.NumAttentionHeads*(c.QKNopeHeadDim+c.VHeadDim), c.KVLoraRank)
	l.linear(p+"o_proj.weight", c.HiddenSize, c.NumAttentionHeads*c.VHeadDim)
}

func (l *lister) mlp(p string, width int) {
	l.linear(p+"gate_proj.weight", width, l.c.HiddenSize)
	l.linear(p+"up_proj.weight", width, l.c.HiddenSize)
	l.linear(p+"down_proj.weight", l.c.HiddenSize, width)
}

// mtp adds a module that predicts the token after the next one: a layer with experts, and copies of embedding and head.
func (l *lister) mtp(p string) {
	l.embedding(p + "embed_tokens.weight")
	l.norm(p+"enorm.weight", l.c.HiddenSize)
	l.norm(p+"hnorm.weight", l.c.HiddenSize)
	l.matrix(p+"eh_proj.weight", l.c.HiddenSize, 2*l.c.HiddenSize)
	l.layer(p, true)
	l.norm(p+"shared_head.norm.weight", l.c.HiddenSize)
	l.head(p + "shared_head.head.weight")
}
