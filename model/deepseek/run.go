package deepseek

import (
	"context"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

// queue puts one op of the list onto the stream. The last op of a block adds its output to the residual stream: the partial sums of a
// cut block must have met before.
func (m *Model) queue(ctx context.Context, op nn.Op) (err error) {
	s, whole := &m.step, !m.share.cut()
	var l *layer
	if op.Layer >= 0 {
		l = &m.layers[op.Layer]
	}
	switch op.Name {
	case nn.OpEmbed:
		m.st.Embed(s.x, m.embed, s.in.Tokens, m.share.vocab.from)
		if whole {
			m.observe(Embedding, 0, s.x)
		}
	case nn.OpEmbedReduce:
		m.reduce(s.x)
		m.observe(Embedding, 0, s.x)

	case nn.OpAttention:
		m.st.RMSNorm(s.h, s.x, l.inputNorm, float32(m.cfg.RMSNormEps))
		m.attend(&l.attn, l.cache)
		if whole {
			m.endAttention(l)
		}
	case nn.OpAttentionReduce:
		m.reduce(s.y)
		m.endAttention(l)

	case nn.OpMLP:
		m.mlp(l.dense)
		if whole {
			m.endLayer(op.Layer)
		}
	case nn.OpMLPReduce:
		m.reduce(s.y)
		m.endLayer(op.Layer)

	case nn.OpRoute:
		m.route(l.moe, op.Layer)
	case nn.OpDispatch, nn.OpA2E:
		if s.visit, err = m.exchange.A2E(ctx, m.st, s.h.Slice(s.from, s.to), s.ids); err != nil {
			return err
		}
		s.sent.A2E += s.visit.Sent
		n := m.share.experts.len()
		m.st.GetInt32(m.host.served[op.Layer*n:(op.Layer+1)*n], s.visit.Counts)
	case nn.OpShared:
		m.mlp(l.moe.shared)
	case nn.OpSharedReduce:
		m.scatter(s.own, s.y)
	case nn.OpExperts:
		mid := m.act.routedMid.Slice(0, s.visit.Rows.Rows) // (M, I)
		m.st.GroupedSwiGLU(mid, s.visit.Rows, s.visit.Counts, l.moe.gate, l.moe.up)
		m.st.GroupedMatMul(s.visit.Rows, mid, s.visit.Counts, l.moe.down)
	case nn.OpE2A:
		if s.home, err = m.exchange.E2A(ctx, m.st, s.visit); err != nil {
			return err
		}
		s.sent.E2A += s.home.Sent
	case nn.OpCombine:
		if err := m.combine(ctx, l.moe); err != nil {
			return err
		}
		if whole {
			m.endLayer(op.Layer)
		}
	case nn.OpExpertsReduce:
		m.reduce(s.y)
		m.endLayer(op.Layer)
	case nn.OpGather:
		m.gather(s.y, s.own)
		m.endLayer(op.Layer)

	case nn.OpLogits:
		m.logits()
	case nn.OpLogitsGather:
		m.gatherLogits()
	default:
		return fmt.Errorf("the list has an op %q that this network does not", op.Name)
	}
	return nil
}

// endAttention adds the attention's output and norms the input of the layer's second block.
func (m *Model) endAttention(l *layer) {
	s := &m.step
	m.st.AddRMSNorm(s.h, s.x, s.y, l.postNorm, float32(m.cfg.RMSNormEps))
}

// endLayer adds the second block's output.
func (m *Model) endLayer(layer int) {
	s := &m.step
	m.st.Add(s.x, s.x, s.y)
	m.st.MarkNonFinite(s.bad, s.x, int32(layer))
	m.observe(LayerOutput, layer, s.x)
}

// attend is multi-head latent attention from h to y. In absorbed form the key's up-projection goes into the query and the value's follows
// the weighted sum of latents; rows of prompts may take the expanded form. In both the cache holds latent+rope numbers per position for
// all heads.
func (m *Model) attend(a *attention, cache hal.Tensor) {
	c, s, rows := m.cfg, &m.step, m.step.h.Rows
	lat, rope := c.KVLoraRank, c.QKRopeHeadDim

	q := m.act.q.Slice(0, rows) // (T, n·(nope+rope))
	if a.qDown.Data.IsZero() {
		m.st.MatMul(q, s.h, a.q)
	} else {
		down := m.act.qDown.Slice(0, rows) // (T, q_lora_rank)
		m.st.MatMul(down, s.h, a.qDown)
		m.st.RMSNorm(down, down, a.qNorm, latentEps)
		m.st.MatMul(q, down, a.q)
	}

	kv := m.act.kv.Slice(0, rows) // (T, latent+rope)
	m.st.MatMul(kv, s.h, a.kvDown)
	latent := kv.Columns(0, lat) // (T, latent)
	m.st.RMSNorm(latent, latent, a.kvNorm, latentEps)
	m.st.Rope(kv, kv, s.in.Positions, m.rope, hal.Rope{Heads: 1, Dim: rope, InStride: lat + rope, InOffset: lat, OutStride: lat + rope, OutOffset: lat})
	m.st.StoreKV(cache, kv, s.in.Slots)

	v, d := m.act.v.Slice(0, rows), m.absorbed() // (T, n·value)
	if d > 0 {
		m.attendAbsorbed(a, cache, v.Slice(0, d), q.Slice(0, d))
	}
	if d < rows {
		m.attendExpanded(a, cache, v, q, d)
	}
	m.st.MatMul(s.y, v, a.out)
}

// absorbed returns how many rows, from the first on, attend in absorbed form: all, or those that continue an answer. Padding has no share
// in either.
func (m *Model) absorbed() int {
	if m.limits.ExpandPrompts {
		return m.step.batch.Decode
	}
	return m.step.batch.Rows()
}

// expandedRows counts the rows that attend in the expanded form.
func (m *Model) expandedRows() (n int) {
	for _, seq := range m.step.batch.Seqs[m.absorbed():] {
		if seq >= 0 {
			n++
		}
	}
	return n
}

// attendExpanded is attention of rows from d on with keys and values that are made from the cache. // v (T, n·value), q (T, n·(nope+rope))
func (m *Model) attendExpanded(a *attention, cache, v, q hal.Tensor, d int) {
	c, s, rows := m.cfg, &m.step, q.Rows
	n, rope, nope := m.share.heads.len(), c.QKRopeHeadDim, c.QKNopeHeadDim
	q, positions, seqs := q.Slice(d, rows), s.in.Positions.Columns(d, rows), s.in.Seqs.Columns(d, rows)
	m.st.Rope(q, q, positions, m.rope, hal.Rope{Heads: n, Dim: rope, InStride: nope + rope, InOffset: nope, OutStride: nope + rope, OutOffset: nope})
	m.st.MLAExpanded(v.Slice(d, rows), q, cache, s.in.Tables, seqs, positions, a.kUp.w, a.vUp.w, hal.MLAExpanded{
		Heads: n, Latent: c.KVLoraRank, Nope: nope, Rope: rope, Value: c.VHeadDim,
		KeyRows: a.kUp.rows, KeyFrom: a.kUp.from, ValueRows: a.vUp.rows, ValueFrom: a.vUp.from,
		BlockSize: m.limits.BlockSize, Scale: m.act.scale,
	})
}

// attendAbsorbed is attention of the first rows of a step over the latents themselves. // v (D, n·value), q (D, n·(nope+rope))
func (m *Model) attendAbsorbed(a *attention, cache, v, q hal.Tensor) {
	c, s, rows := m.cfg, &m.step, q.Rows
	n, lat, rope, nope, val := m.share.heads.len(), c.KVLoraRank, c.QKRopeHeadDim, c.QKNopeHeadDim, c.VHeadDim
	positions, seqs := s.in.Positions.Columns(0, rows), s.in.Seqs.Columns(0, rows)
	qc := m.act.qc.Slice(0, rows) // (D, n·(latent+rope))
	m.st.HeadMatMul(qc, q, a.kUp.w, hal.HeadMatMul{Heads: n, Rows: a.kUp.rows, From: a.kUp.from, To: a.kUp.to, Transposed: true, InStride: nope + rope, OutStride: lat + rope})
	m.st.Rope(qc, q, positions, m.rope, hal.Rope{Heads: n, Dim: rope, InStride: nope + rope, InOffset: nope, OutStride: lat + rope, OutOffset: lat})

	sum := m.act.sum.Slice(0, rows) // (D, n·latent)
	m.st.MLAAttention(sum, qc, cache, s.in.Tables, seqs, positions, hal.MLAAttention{Heads: n, Latent: lat, Rope: rope, BlockSize: m.limits.BlockSize, Scale: m.act.scale})

	m.st.HeadMatMul(v, sum, a.vUp.w, hal.HeadMatMul{Heads: n, Rows: a.vUp.rows, From: a.vUp.from, To: a.vUp.to, InStride: lat, OutStride: val})
}

// mlp is the gated MLP of dense layers and shared experts, from h to y.
func (m *Model) mlp(w *mlp) {
	s := &m.step
	mid := m.act.mid.Slice(0, s.h.Rows).Columns(0, w.gate.Data.Rows) // (T, width)
	m.st.SwiGLU(mid, s.h, w.gate, w.up)
	m.st.MatMul(s.y, mid, w.down)
}

// route chooses the experts of the rows that this rank brings.
func (m *Model) route(w *moe, layer int) {
	s, n := &m.step, m.step.to-m.step.from
	scores := m.act.scores.Slice(0, n) // (R, E)
	s.ids, s.weights = m.act.ids.Slice(0, n), m.act.weights.Slice(0, n)
	m.st.MatMul(scores, s.h.Slice(s.from, s.to), w.router)
	m.st.Route(s.ids, s.weights, scores, w.bias, s.in.Seqs.Columns(s.from, s.to), m.act.router)
	m.observe(RouterLogits, layer, scores)
	m.observe(RouterIDs, layer, s.ids)
	m.observe(RouterWeights, layer, s.weights)
}

// combine adds the experts' results and the shared experts' in the router's order.
func (m *Model) combine(ctx context.Context, w *moe) (err error) {
	s := &m.step
	if !m.share.spread() {
		if s.home, err = m.exchange.E2A(ctx, m.st, s.visit); err != nil { // nothing moves: no op of its own
			return err
		}
	}
	var shared hal.Tensor
	if w.shared != nil {
		shared = s.own
	}
	m.st.Combine(s.own, s.home.Rows, s.home.Index, s.weights, shared)
	return nil
}

// logits norms the sampled rows and applies the head, or this rank's part of it.
func (m *Model) logits() {
	s := &m.step
	n := s.in.Samples.Cols
	if n == 0 {
		return
	}
	h := m.act.last.Slice(0, n) // (S, H)
	m.st.GatherRows(h, s.x, s.in.Samples)
	m.st.RMSNorm(h, h, m.norm, float32(m.cfg.RMSNormEps))
	m.observe(FinalNorm, len(m.layers), h)
	m.st.MatMul(m.act.logits.Slice(0, n).Columns(0, m.share.vocab.len()), h, m.head)
}
