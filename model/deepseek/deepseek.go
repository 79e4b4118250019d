// Package deepseek is the DeepSeek-V2 and V3 architecture (V2-Lite, V2, V3/R1, Kimi-K2): multi-head latent attention in the
// absorbed form for every token, dense first layers, then mixtures of experts with shared experts.
//
// Forward reads in the order of the computation, over hal only. Shapes: T rows of the step, S rows whose logits are wanted,
// H hidden, N heads, E experts, K experts per token, I width of an MLP; latent is kv_lora_rank, rope qk_rope_head_dim, nope
// qk_nope_head_dim, value v_head_dim.
package deepseek

import (
	"context"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
)

// latentEps is the epsilon of the norms inside attention: the published code gives them no other, whatever rms_norm_eps says.
const latentEps = 1e-6

// Model is one rank's share of the network on a device, with buffers for steps up to its limits. It belongs to the goroutine
// that owns the device.
type Model struct {
	cfg    *config.Config
	limits nn.Limits
	alloc  nn.Allocator
	st     hal.Stream
	inputs *nn.InputBuffers
	act    activations
	host   outputs
	trace  func(Point, int, hal.Tensor)

	embed  hal.Weight // (vocab, H)
	layers []layer
	norm   hal.Tensor // (1, H)
	head   hal.Weight // (vocab, H)
	rope   hal.Tensor // (model length, rope) cos and sin
}

// layer is one decoder layer. Either its dense MLP or its experts are there.
type layer struct {
	inputNorm hal.Tensor // (1, H)
	attn      attention
	postNorm  hal.Tensor // (1, H)
	dense     *mlp
	moe       *moe
	cache     hal.Tensor // (blocks·block size, latent+rope) latent and rotated key of each position
}

type attention struct {
	q      hal.Weight // (N·(nope+rope), H), or (N·(nope+rope), q_lora_rank) behind qDown
	qDown  hal.Weight // (q_lora_rank, H), or none
	qNorm  hal.Tensor // (1, q_lora_rank)
	kvDown hal.Weight // (latent+rope, H)
	kvNorm hal.Tensor // (1, latent)
	kvUp   hal.Weight // (N·(nope+value), latent): for each head the rows of its keys, then of its values
	out    hal.Weight // (H, N·value)
}

type mlp struct {
	gate, up hal.Weight // (I, H)
	down     hal.Weight // (H, I)
}

type moe struct {
	router   hal.Weight   // (E, H)
	bias     hal.Tensor   // (1, E), or none
	gate, up []hal.Weight // E of (I, H)
	down     []hal.Weight // E of (H, I)
	shared   *mlp         // or none
}

// Forward runs one step: it writes the KV rows of the batch and returns the logits of its samples. A batch that does not fit
// is refused before anything runs; a device error names the layer. It returns when the device is done, or at the next layer after
// ctx has ended.
func (m *Model) Forward(ctx context.Context, b *nn.Batch) (nn.Output, error) {
	if err := b.Check(m.limits, m.cfg.VocabSize); err != nil {
		return nn.Output{}, err
	}
	rows := b.Rows()
	in := m.inputs.Put(m.st, b)
	bad := m.clearMarks(rows) // (1, T)

	x := m.act.x.Slice(0, rows) // (T, H) the residual stream
	m.st.Embed(x, m.embed, in.Tokens)
	m.observe(Embedding, 0, x)
	for i := range m.layers {
		l := &m.layers[i]
		h := m.act.h.Slice(0, rows) // (T, H)
		y := m.act.y.Slice(0, rows) // (T, H)

		m.st.RMSNorm(h, x, l.inputNorm, float32(m.cfg.RMSNormEps))
		m.attend(y, h, &l.attn, l.cache, in)
		m.st.Add(x, x, y)

		m.st.RMSNorm(h, x, l.postNorm, float32(m.cfg.RMSNormEps))
		if l.dense != nil {
			m.mlp(y, h, l.dense)
		} else {
			m.experts(y, h, l.moe, i)
		}
		m.st.Add(x, x, y)

		m.st.MarkNonFinite(bad, x, int32(i))
		m.observe(LayerOutput, i, x)
		if m.st.Err() != nil || ctx.Err() != nil {
			return nn.Output{}, m.failed(ctx, fmt.Sprintf("layer %d", i))
		}
	}
	m.logits(x, in.Samples)
	return m.collect(ctx, b)
}

// attend is multi-head latent attention. The key's up-projection is absorbed into the query and the value's follows the
// weighted sum of latents, so the cache holds latent+rope numbers per position for all heads. // y, h (T, H)
func (m *Model) attend(y, h hal.Tensor, a *attention, cache hal.Tensor, in nn.Inputs) {
	c, rows := m.cfg, h.Rows
	n, lat, rope, nope, val := c.NumHeads, c.KVLoraRank, c.QKRopeHeadDim, c.QKNopeHeadDim, c.VHeadDim

	q := m.act.q.Slice(0, rows) // (T, N·(nope+rope))
	if a.qDown.Data.IsZero() {
		m.st.MatMul(q, h, a.q)
	} else {
		down := m.act.qDown.Slice(0, rows) // (T, q_lora_rank)
		m.st.MatMul(down, h, a.qDown)
		m.st.RMSNorm(down, down, a.qNorm, latentEps)
		m.st.MatMul(q, down, a.q)
	}

	kv := m.act.kv.Slice(0, rows) // (T, latent+rope)
	m.st.MatMul(kv, h, a.kvDown)
	latent := kv.Columns(0, lat) // (T, latent)
	m.st.RMSNorm(latent, latent, a.kvNorm, latentEps)
	m.st.Rope(kv, kv, in.Positions, m.rope, hal.Rope{Heads: 1, Dim: rope, InStride: lat + rope, InOffset: lat, OutStride: lat + rope, OutOffset: lat})
	m.st.StoreKV(cache, kv, in.Slots)

	qc := m.act.qc.Slice(0, rows) // (T, N·(latent+rope))
	m.st.HeadMatMul(qc, q, a.kvUp, hal.HeadMatMul{Heads: n, Rows: nope + val, From: 0, To: nope, Transposed: true, InStride: nope + rope, OutStride: lat + rope})
	m.st.Rope(qc, q, in.Positions, m.rope, hal.Rope{Heads: n, Dim: rope, InStride: nope + rope, InOffset: nope, OutStride: lat + rope, OutOffset: lat})

	sum := m.act.sum.Slice(0, rows) // (T, N·latent)
	m.st.MLAAttention(sum, qc, cache, in.Tables, in.Seqs, in.Positions, hal.MLAAttention{Heads: n, Latent: lat, Rope: rope, BlockSize: m.limits.BlockSize, Scale: m.act.scale})

	v := m.act.v.Slice(0, rows) // (T, N·value)
	m.st.HeadMatMul(v, sum, a.kvUp, hal.HeadMatMul{Heads: n, Rows: nope + val, From: nope, To: nope + val, InStride: lat, OutStride: val})
	m.st.MatMul(y, v, a.out)
}

// mlp is the gated MLP of dense layers and shared experts. // y, h (T, H)
func (m *Model) mlp(y, h hal.Tensor, w *mlp) {
	mid := m.act.mid.Slice(0, h.Rows).Columns(0, w.gate.Data.Rows) // (T, width)
	m.st.SwiGLU(mid, h, w.gate, w.up)
	m.st.MatMul(y, mid, w.down)
}

// experts routes rows to experts and brings the results home in the router's order. // y, h (T, H)
func (m *Model) experts(y, h hal.Tensor, w *moe, layer int) {
	rows, k := h.Rows, m.cfg.NumExpertsPerTok
	scores := m.act.scores.Slice(0, rows)   // (T, E)
	ids := m.act.ids.Slice(0, rows)         // (T, K)
	weights := m.act.weights.Slice(0, rows) // (T, K)
	m.st.MatMul(scores, h, w.router)
	m.st.Route(ids, weights, scores, w.bias, m.act.router)
	m.observe(RouterLogits, layer, scores)
	m.observe(RouterIDs, layer, ids)
	m.observe(RouterWeights, layer, weights)

	var shared hal.Tensor
	if w.shared != nil {
		shared = y
		m.mlp(y, h, w.shared)
	}
	routed := m.act.routed.Slice(0, rows*k) // (T·K, H) sorted by expert
	mid := m.act.routedMid.Slice(0, rows*k) // (T·K, I)
	index := m.act.index.Slice(0, rows)     // (T, K)
	m.st.Dispatch(routed, index, m.act.counts, h, ids)
	m.st.GroupedSwiGLU(mid, routed, m.act.counts, w.gate, w.up)
	m.st.GroupedMatMul(routed, mid, m.act.counts, w.down)
	m.st.Combine(y, routed, index, weights, shared)
}

// logits norms the sampled rows and applies the head. // x (T, H), samples (1, S)
func (m *Model) logits(x, samples hal.Tensor) {
	n := samples.Cols
	if n == 0 {
		return
	}
	h := m.act.last.Slice(0, n)        // (S, H)
	logits := m.act.logits.Slice(0, n) // (S, vocab)
	m.st.GatherRows(h, x, samples)
	m.st.RMSNorm(h, h, m.norm, float32(m.cfg.RMSNormEps))
	m.observe(FinalNorm, len(m.layers), h)
	m.st.MatMul(logits, h, m.head)
}
