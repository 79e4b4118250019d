package actors

import "sync"

// Batch is what an engine runs in a step. Its number of tokens is the Rows of its vote. Rows never change; which of them run as
// padding because their requests have ended meanwhile is open until the first rank of the engine begins the step, and then the same
// for all ranks, which share the Batch.
type Batch struct {
	Rows []Rows

	mu     sync.Mutex // guards the fields below: scheduler and ranks use them
	ended  []bool     // by Rows, nil if none has ended
	closed bool       // a rank has begun
}

// Tokens returns the number of rows that were voted for.
func (b *Batch) Tokens() int {
	n := 0
	for _, r := range b.Rows {
		n += len(r.Tokens)
	}
	return n
}

// End says that a request has ended: its rows run as padding, unless a rank has begun the step.
func (b *Batch) End(id RequestID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	for i, r := range b.Rows {
		if r.Request != id {
			continue
		}
		if b.ended == nil {
			b.ended = make([]bool, len(b.Rows))
		}
		b.ended[i] = true
	}
}

// Begin returns which of Rows run as padding because their requests have ended, nil for none. It is the same for all who ask: the
// first call ends the time of End. The result is not to be changed.
func (b *Batch) Begin() []bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.ended
}
