// Package actortest is a stand-in for a network, for tests of the actors that run one. Its next token depends on every token
// of the sequence, read back through the KV slots and block tables of the batch, so that a wrong position, slot, table or
// order changes the answer. Several models stand for the ranks of a group: they wait for each other in every step, as in a
// collective, so that a step which one of them misses hangs. It computes nothing on a device and knows no actor.
package actortest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

// Layers is the number of decoder layers the model claims to have.
const Layers = 4

// RowBytes is what the model says it sends for each row and meeting.
const RowBytes = 4

// Model is a fake network over Vocab tokens. Its fields are set before it runs.
type Model struct {
	Vocab  int
	Limits nn.Limits
	// Before is called with every batch, from 1, before it is computed, in the attention of layer 0. What it returns is the
	// cause of Forward's nn.OpError. It may block or panic. Nil: nothing.
	Before func(ctx context.Context, call int, b *nn.Batch) error
	// Bad says which layer's output is not finite for a sequence that ends with token, -1 for none. Nil: none.
	Bad func(token int32) int32
	// Progress says where in a step the model is.
	Progress nn.Progress

	cache  []int32 // by slot: token + 1, 0 is unwritten
	calls  int
	tp, ep *Comm // nil: no one to meet
	step   nn.Step
	out    nn.Output

	mu     sync.Mutex // guards closed
	closed int
}

// NewModel makes a model for batches within l.
func NewModel(vocab int, l nn.Limits) *Model {
	return &Model{Vocab: vocab, Limits: l, cache: make([]int32, l.Blocks*l.BlockSize)}
}

// Next is the definition of the answer: the token that follows a sequence.
func Next(tokens []int32, vocab int) int32 {
	h := uint32(2166136261)
	for i, t := range tokens {
		h = (h ^ uint32(t) ^ uint32(i)<<16) * 16777619
	}
	return int32(h % uint32(vocab))
}

// Answer returns the n tokens that follow a prompt.
func Answer(prompt []int32, n, vocab int) []int32 {
	all := append([]int32(nil), prompt...)
	for range n {
		all = append(all, Next(all, vocab))
	}
	return all[len(prompt):]
}

// ops is the list of a model that meets the engine's ranks and those that share the experts, at indices named below.
var ops = func() []nn.Op {
	list := []nn.Op{{Name: nn.OpEmbed, Layer: -1}}
	for l := range Layers {
		list = append(list, nn.Op{Name: nn.OpAttention, Layer: l}, nn.Op{Name: nn.OpA2E, Layer: l})
	}
	return append(list, nn.Op{Name: nn.OpLogits, Layer: -1}, nn.Op{Name: nn.OpSample, Layer: -1}, nn.Op{Name: nn.OpTokens, Layer: -1})
}()

// Join gives the model those whom it meets, made by Rack.Join.
func (m *Model) Join(tp, ep hal.Comm) {
	m.tp, _ = tp.(*Comm)
	m.ep, _ = ep.(*Comm)
}

// Forward writes the batch's tokens into the cache and returns for every sample the logits of Next: 10 for it, less the
// farther away an id is. In every layer it meets the ranks that share the experts, which must be in the same step with as many
// rows. Only the first rank of an engine returns logits.
func (m *Model) Forward(ctx context.Context, b *nn.Batch, s nn.Step) (nn.Output, error) {
	m.calls++
	m.step = s
	m.Progress.Begin(s.Number, &ops)
	if err := m.forward(ctx, b); err != nil {
		at := m.Progress.Read().Op
		m.Progress.End()
		return nn.Output{}, &nn.OpError{Op: at, Err: err}
	}
	m.Progress.Enter(len(ops) - 2) // the caller samples
	return m.out, nil
}

func (m *Model) forward(ctx context.Context, b *nn.Batch) error {
	m.out = nn.Output{Logits: m.out.Logits[:0], BadLayer: m.out.BadLayer[:0]}
	m.Progress.Enter(0)
	if err := b.Check(m.Limits, m.Vocab); err != nil {
		return err
	}
	for l := range Layers {
		m.Progress.Enter(1 + 2*l)
		if l == 0 && m.Before != nil {
			if err := m.Before(ctx, m.calls, b); err != nil {
				return err
			}
		}
		m.Progress.Enter(2 + 2*l)
		if err := m.exchange(ctx, l, b.Rows()); err != nil {
			return err
		}
	}
	for i, slot := range b.Slots {
		if slot != nn.Padding {
			m.cache[slot] = b.Tokens[i] + 1
		}
	}
	m.Progress.Enter(1 + 2*Layers)
	if m.tp != nil && m.tp.Group().Rank > 0 {
		return nil
	}
	for _, row := range b.Samples {
		tokens, err := m.sequence(b, int(row))
		if err != nil {
			return err
		}
		m.sample(tokens)
	}
	return nil
}

// meet meets the others, and shows that it waits for them.
func (m *Model) meet(ctx context.Context, c *Comm, what string, give []int32) ([][]int32, error) {
	m.Progress.Tick(true)
	defer m.Progress.Tick(false)
	return c.Meet(ctx, what, give)
}

// exchange meets the others in a layer.
func (m *Model) exchange(ctx context.Context, layer, rows int) error {
	what := fmt.Sprintf("step %d layer %d: %d rows by %s in %d stages", m.step.Number, layer, rows, m.step.Exchange, m.step.Stages)
	if m.ep != nil {
		if _, err := m.meet(ctx, m.ep, what, nil); err != nil {
			return err
		}
		m.out.Sent.A2E += int64(rows * RowBytes)
		m.out.Sent.E2A += int64(rows * RowBytes)
	}
	if m.tp != nil {
		if _, err := m.meet(ctx, m.tp, what, nil); err != nil {
			return err
		}
		m.out.Sent.TP += int64(rows * RowBytes)
	}
	return nil
}

// Share gives the tokens of the engine's first rank to the others.
func (m *Model) Share(ctx context.Context, tokens []int32) error {
	defer m.Progress.End()
	if m.tp == nil {
		return nil
	}
	m.Progress.Enter(len(ops) - 1)
	all, err := m.meet(ctx, m.tp, fmt.Sprintf("step %d: %d tokens", m.step.Number, len(tokens)), tokens)
	if err != nil {
		return &nn.OpError{Op: ops[len(ops)-1], Err: err}
	}
	if copy(tokens, all[0]) != len(all[0]) {
		return errors.New("actortest: the engine's first rank chose more tokens than fit")
	}
	return nil
}

// sequence reads the tokens of a row's sequence up to the row.
func (m *Model) sequence(b *nn.Batch, row int) ([]int32, error) {
	table := b.Tables[int(b.Seqs[row])*b.Width:][:b.Width]
	tokens := make([]int32, b.Positions[row]+1)
	for p := range tokens {
		t := m.cache[int(table[p/m.Limits.BlockSize])*m.Limits.BlockSize+p%m.Limits.BlockSize]
		if t == 0 {
			return nil, fmt.Errorf("actortest: row %d reads position %d, which nobody wrote", row, p)
		}
		tokens[p] = t - 1
	}
	return tokens, nil
}

func (m *Model) sample(tokens []int32) {
	bad := int32(-1)
	if m.Bad != nil {
		bad = m.Bad(tokens[len(tokens)-1])
	}
	next := Next(tokens, m.Vocab)
	for id := range m.Vocab {
		l := 10 - float32((id-int(next)+m.Vocab)%m.Vocab)/4
		if bad >= 0 {
			l = float32(math.NaN())
		}
		m.out.Logits = append(m.out.Logits, l)
	}
	m.out.BadLayer = append(m.out.BadLayer, bad)
}

// Close counts its calls.
func (m *Model) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed++
}

// Closed returns how often Close was called.
func (m *Model) Closed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}
