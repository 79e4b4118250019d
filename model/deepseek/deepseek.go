// Package deepseek is the DeepSeek-V2 and V3 architecture (V2-Lite, V2, V3/R1, Kimi-K2): multi-head latent attention in the
// absorbed form for every token, dense first layers, then mixtures of experts with shared experts.
//
// A model is one rank's share: with tensor parallelism its heads, its width of the MLPs and its tokens of embedding and head;
// with expert parallelism its experts, whole. A step is a list of ops (Ops), the same on all ranks that meet, and Forward walks it, over hal
// only. It makes no communicators and samples nothing.
//
// Shapes: T rows of the step, R of them brought to the experts by this rank, M rows at its experts, S rows whose logits are
// wanted, H hidden, n heads of this rank, E experts, K experts per token, I width of an MLP; latent is kv_lora_rank, rope
// qk_rope_head_dim, nope qk_nope_head_dim, value v_head_dim.
package deepseek

import (
	"context"
	"errors"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/exchange"
	"github.com/moerack/moerack/model/nn"
)

// latentEps is the epsilon of the norms inside attention: the published code gives them no other, whatever rms_norm_eps says.
const latentEps = 1e-6

// Model is one rank's share of the network on a device, with buffers for steps up to its limits. It belongs to the goroutine
// that owns the device; Progress and Load may be read by anyone.
type Model struct {
	cfg      *config.Config
	share    share
	limits   nn.Limits
	list     []nn.Op // of every step
	progress nn.Progress
	load     *nn.Load

	alloc    nn.Allocator
	st       hal.Stream
	tp       hal.Comm // of the engine's ranks; nil: not joined, or alone
	unfit    error    // why no step can be run with the communicators that were given
	exchange exchange.Exchange
	inputs   *nn.InputBuffers
	act      activations
	host     outputs
	step     step
	trace    func(Point, int, hal.Tensor)

	embed  hal.Weight // (the rank's part of the vocabulary, H)
	layers []layer
	norm   hal.Tensor // (1, H)
	head   hal.Weight // (the rank's part of the vocabulary, H)
	rope   hal.Tensor // (model length, rope) cos and sin
}

// step is the state of the one that runs.
type step struct {
	ctx   context.Context //nolint:containedctx // of the call that runs: the device asks in the middle of an operation
	batch *nn.Batch
	in    nn.Inputs
	bad   hal.Tensor // (1, T) I32 first layer that was not finite
	x     hal.Tensor // (T, H) residual stream
	h     hal.Tensor // (T, H) normed input of a block
	y     hal.Tensor // (T, H) output of a block

	from, to int        // the rows that this rank brings to the experts
	own      hal.Tensor // (R, H) output of a block for them; y if that is all
	ids      hal.Tensor // (R, K) I32
	weights  hal.Tensor // (R, K)
	visit    exchange.Visit
	home     exchange.Home

	sent nn.Traffic
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
	q      hal.Weight // (n·(nope+rope), H), or (n·(nope+rope), q_lora_rank) behind qDown
	qDown  hal.Weight // (q_lora_rank, H), or none
	qNorm  hal.Tensor // (1, q_lora_rank)
	kvDown hal.Weight // (latent+rope, H)
	kvNorm hal.Tensor // (1, latent)
	kUp    headRows   // (n·nope, latent)
	vUp    headRows   // (n·value, latent)
	out    hal.Weight // (H, n·value)
}

// headRows is a matrix of which rows [from, to) of every rows are meant: those of a head. Keys and values share one as published.
type headRows struct {
	w              hal.Weight
	rows, from, to int
}

type mlp struct {
	gate, up hal.Weight // (I, H)
	down     hal.Weight // (H, I)
}

type moe struct {
	router   hal.Weight   // (E, H)
	bias     hal.Tensor   // (1, E), or none
	gate, up []hal.Weight // of the rank's experts, (I, H)
	down     []hal.Weight // (H, I)
	shared   *mlp         // or none
}

// Progress says where in a step this rank is.
func (m *Model) Progress() *nn.Progress { return &m.progress }

// Load counts the rows that this rank's experts have served in all layers. With tensor parallelism inside the experts each rank of the
// engine counts the same rows.
func (m *Model) Load() *nn.Load { return m.load }

// Forward runs one step: it writes the KV rows of the batch and returns the logits of its samples. A batch or a step that does not
// fit is refused before anything runs; any later error is an *nn.OpError. It returns when the device is done, or soon
// after ctx has ended, with class Aborted if that was in the middle of an operation.
//
// A step whose Forward succeeded is ended by Share, and until then its Progress shows the op "sample". A failed one
// is over. All ranks that meet run the same steps, with as many rows; a rank that fails leaves the others waiting until their
// communicator is aborted.
func (m *Model) Forward(ctx context.Context, b *nn.Batch, s nn.Step) (nn.Output, error) {
	if err := m.check(b, s); err != nil {
		return nn.Output{}, err
	}
	m.progress.Begin(s.Number, &m.list)
	m.begin(ctx, b)
	i := 0
	for ; m.list[i].Name != nn.OpSample; i++ {
		m.progress.Enter(i)
		if err := m.run(ctx, m.list[i]); err != nil {
			return nn.Output{}, m.broken(i, err)
		}
	}
	out, err := m.collect(ctx)
	if err != nil {
		return nn.Output{}, m.broken(i-1, err)
	}
	m.progress.Enter(i)
	return out, nil
}

// Share ends a step whose Forward succeeded, exactly once: the engine's first rank gives what it sampled, and on its other ranks the
// same number of tokens is filled in. Without other ranks, or tokens, nothing moves. // tokens (≤ samples)
func (m *Model) Share(ctx context.Context, tokens []int32) error {
	m.step.ctx = ctx //nolint:fatcontext // in place of that of Forward, not around it
	err := m.giveTokens(ctx, tokens)
	m.progress.End() // not deferred: where a panic happened must stay readable
	return err
}

// giveTokens is the part of Share that meets the engine's ranks.
func (m *Model) giveTokens(ctx context.Context, tokens []int32) error {
	if len(tokens) > m.limits.Samples {
		return fmt.Errorf("deepseek: %d tokens to share, buffers hold %d", len(tokens), m.limits.Samples)
	}
	last := len(m.list) - 1
	if m.list[last].Name != nn.OpTokens {
		return nil
	}
	m.progress.Enter(last)
	if err := m.tokens(ctx, tokens); err != nil {
		return m.broken(last, err)
	}
	return nil
}

// check refuses what does not fit.
func (m *Model) check(b *nn.Batch, s nn.Step) error {
	if err := b.Check(m.limits, m.cfg.VocabSize); err != nil {
		return err
	}
	tp := m.share.place.TP
	switch {
	case s.Exchange != m.share.exchange():
		return fmt.Errorf("deepseek: exchange %q: with experts on %d ranks it is %q", s.Exchange, m.share.place.EP, m.share.exchange())
	case s.Stages != 1:
		return fmt.Errorf("deepseek: %d stages: a step is run in one", s.Stages)
	case b.Rows()%tp != 0:
		return fmt.Errorf("deepseek: %d rows: must be padded to a multiple of the engine's %d ranks", b.Rows(), tp)
	}
	return m.unfit
}

// begin sets the state of the step and queues its inputs.
func (m *Model) begin(ctx context.Context, b *nn.Batch) {
	rows := b.Rows()
	s := step{
		ctx:   ctx,
		batch: b,
		in:    m.inputs.Put(m.st, b),
		bad:   m.act.marks.Columns(0, rows),
		x:     m.act.x.Slice(0, rows),
		h:     m.act.h.Slice(0, rows),
		y:     m.act.y.Slice(0, rows),
	}
	s.from, s.to = m.share.own(rows)
	s.own = s.y
	if s.to-s.from < rows {
		s.own = m.act.own.Slice(0, s.to-s.from)
	}
	m.step = s
	m.st.PutInt32(s.bad, m.host.none[:rows])
}

// run does one op and returns the stream's error, if one is known, or that ctx has ended.
func (m *Model) run(ctx context.Context, op nn.Op) error {
	if err := m.queue(ctx, op); err != nil {
		return err
	}
	if m.st.Err() == nil && ctx.Err() == nil {
		return nil
	}
	if err := m.st.Synchronize(ctx); err != nil {
		return err
	}
	return errors.New("the stream reported an error and then none")
}

// pulse says that the operation that runs gets on, and ends it when the context of the step has ended.
func (m *Model) pulse(waits bool) error {
	m.progress.Tick(waits)
	if m.step.ctx == nil { // outside a step
		return nil
	}
	return m.step.ctx.Err()
}

// broken ends a step at op i.
func (m *Model) broken(i int, err error) error {
	m.progress.End()
	return &nn.OpError{Op: m.list[i], Err: err}
}

// collect waits for the step and brings logits and marks to the host.
func (m *Model) collect(ctx context.Context) (nn.Output, error) {
	b, out := m.step.batch, nn.Output{Sent: m.step.sent, Expanded: m.expandedRows()}
	if m.share.place.TPRank == 0 {
		m.getOutput(&out, len(b.Samples), b.Rows())
	}
	if err := m.st.Synchronize(ctx); err != nil {
		return nn.Output{}, err
	}
	for i := range out.BadLayer {
		if mark := m.host.marks[b.Samples[i]]; mark >= 0 {
			out.BadLayer[i] = mark
		}
	}
	n := m.share.experts.len()
	for i := m.cfg.FirstKDenseReplace; i < len(m.layers); i++ {
		for e, rows := range m.host.served[i*n : (i+1)*n] {
			m.load.Add(e, int64(rows))
		}
	}
	return out, nil
}

// getOutput queues the way of n samples' logits and of all rows' marks to the host.
func (m *Model) getOutput(out *nn.Output, n, rows int) {
	out.Logits, out.BadLayer = m.host.logits[:n*m.cfg.VocabSize], m.host.tail[:n]
	if n > 0 {
		logits, tail := m.act.logits.Slice(0, n), m.act.tail.Columns(0, n)
		m.st.PutInt32(tail, m.host.none[:n])
		m.st.MarkNonFinite(tail, logits, int32(len(m.layers)))
		m.st.GetFloat32(out.Logits, logits)
		m.st.GetInt32(out.BadLayer, tail)
	}
	m.st.GetInt32(m.host.marks[:rows], m.step.bad)
}
