package deepseek

import (
	"context"
	"errors"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/exchange"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// Join gives the communicators of an epoch: the engine's ranks, and those that share the experts; nil where the rank is alone. They
// stay the caller's, who closes them after the model, or after the next Join. Those of another size or rank make every step fail.
func (m *Model) Join(tp, ep hal.Comm) {
	m.tp = tp
	m.unfit = checkJoined(m.share.place, tp, ep)
	if g, ok := m.exchange.(*exchange.AllGather); ok {
		g.Join(ep)
	}
}

// checkJoined says which communicator is missing or another's.
func checkJoined(p topology.Place, tp, ep hal.Comm) error {
	return errors.Join(
		checkComm("the engine's ranks", tp, p.TP, p.TPRank),
		checkComm("the ranks that share the experts", ep, p.EP, p.EPRank))
}

func checkComm(what string, c hal.Comm, size, rank int) error {
	if size == 1 {
		return nil
	}
	if c == nil {
		return fmt.Errorf("deepseek: no communicator of %s: there are %d, Join comes first", what, size)
	}
	if g := c.Group(); g.Size != size || g.Rank != rank {
		return fmt.Errorf("deepseek: the communicator of %s is of rank %d of %d, this is rank %d of %d", what, g.Rank, g.Size, rank, size)
	}
	return nil
}

func (m *Model) newExchange(a *nn.Allocator) exchange.Exchange {
	sizes := m.share.sizes(m.cfg, m.limits.Rows)
	if m.share.spread() {
		return exchange.NewAllGather(a, sizes)
	}
	return exchange.NewLocal(a, sizes)
}

// reduce adds up the partial sums of the engine's ranks, in their order. // t (T, H)
func (m *Model) reduce(t hal.Tensor) {
	m.tp.AllReduce(m.st, t, t)
	m.step.sent.TP += 2 * m.others(t)
}

// scatter is reduce for this rank's rows alone. // own (T/TP, H), t (T, H)
func (m *Model) scatter(own, t hal.Tensor) {
	m.tp.ReduceScatter(m.st, own, t)
	m.step.sent.TP += m.others(t)
}

// gather brings the rows of the engine's ranks together. // t (T, H), own (T/TP, H)
func (m *Model) gather(t, own hal.Tensor) {
	m.tp.AllGather(m.st, t, own)
	m.step.sent.TP += m.others(t)
}

// others is what one phase of a collective sends to other ranks: of a reduce-scatter the parts of t that are theirs, of an
// all-gather the own part to each of them. An all-reduce is both.
func (m *Model) others(t hal.Tensor) int64 {
	n := int64(m.share.place.TP)
	return int64(t.Rows) * int64(t.Cols) * int64(t.DType.Size()) * (n - 1) / n
}

// gatherLogits brings the parts of the vocabulary to the engine's first rank.
func (m *Model) gatherLogits() {
	n, p := m.step.in.Samples.Cols, m.share.place
	if n == 0 {
		return
	}
	logits := m.act.logits.Slice(0, n)
	if p.TPRank > 0 {
		m.tp.Send(m.st, logits, 0)
		return
	}
	for r := 1; r < p.TP; r++ {
		from, to := topology.VocabSlice(m.cfg.VocabSize, p.TP, r)
		m.tp.Recv(m.st, logits.Columns(from, to), r)
	}
}

// tokens brings what was sampled from the engine's first rank to the others.
func (m *Model) tokens(ctx context.Context, tokens []int32) error {
	if len(tokens) == 0 {
		return nil
	}
	t, p := m.act.tokens.Columns(0, len(tokens)), m.share.place
	if p.TPRank > 0 {
		m.tp.Recv(m.st, t, 0)
		m.st.GetInt32(tokens, t)
		return m.st.Synchronize(ctx)
	}
	m.st.PutInt32(t, tokens)
	for r := 1; r < p.TP; r++ {
		m.tp.Send(m.st, t, r)
	}
	return m.st.Synchronize(ctx)
}
