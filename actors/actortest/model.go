// Package actortest is a stand-in for a network, for tests of the actors that run one. Its next token depends on every token
// of the sequence, read back through the KV slots and block tables of the batch, so that a wrong position, slot, table or
// order changes the answer. It computes nothing on a device and knows no actor.
package actortest

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/moerack/moerack/model/nn"
)

// Layers is the number of decoder layers the model claims to have.
const Layers = 4

// Model is a fake network over Vocab tokens. Its fields are set before it runs.
type Model struct {
	Vocab  int
	Limits nn.Limits
	// Before is called with every batch, from 1, before it is computed. What it returns or panics with is what Forward does.
	// It may block. Nil: nothing.
	Before func(ctx context.Context, call int, b *nn.Batch) error
	// Bad says which layer's output is not finite for a sequence that ends with token, -1 for none. Nil: none.
	Bad func(token int32) int32

	cache []int32 // by slot: token + 1, 0 is unwritten
	calls int
	out   nn.Output

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

// Forward writes the batch's tokens into the cache and returns for every sample the logits of Next: 10 for it, less the
// farther away an id is.
func (m *Model) Forward(ctx context.Context, b *nn.Batch) (nn.Output, error) {
	m.calls++
	if m.Before != nil {
		if err := m.Before(ctx, m.calls, b); err != nil {
			return nn.Output{}, err
		}
	}
	if err := b.Check(m.Limits, m.Vocab); err != nil {
		return nn.Output{}, err
	}
	for i, slot := range b.Slots {
		if slot != nn.Padding {
			m.cache[slot] = b.Tokens[i] + 1
		}
	}
	m.out.Logits, m.out.BadLayer = m.out.Logits[:0], m.out.BadLayer[:0]
	for _, row := range b.Samples {
		tokens, err := m.sequence(b, int(row))
		if err != nil {
			return nn.Output{}, err
		}
		m.sample(tokens)
	}
	return m.out, nil
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
