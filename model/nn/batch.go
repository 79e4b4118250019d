package nn

import (
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/kv"
)

// Padding marks a row that computes along but stands for no token: in Batch.Slots and Batch.Seqs.
const Padding = -1

// Batch is what one rank computes in one step. All slices are the caller's; Forward only reads them. A padding row has token
// 0, position 0, slot and sequence Padding: it writes no KV, and its results are never looked at.
type Batch struct {
	Tokens    []int32 // (rows) token ids
	Positions []int32 // (rows) position of each token in its sequence
	Slots     []int32 // (rows) KV cache row to write, block·block size + offset, or Padding
	Seqs      []int32 // (rows) row of Tables, or Padding
	Tables    []int32 // (sequences, width) block numbers, row-major; unused entries are 0
	Width     int     // blocks in a row of Tables
	Samples   []int32 // (samples) rows whose logits are wanted
	Decode    int     // rows at the beginning that continue an answer; where prompts are expanded, those behind them are
}

// Rows returns the number of rows, padding included.
func (b *Batch) Rows() int { return len(b.Tokens) }

// Sequences returns the number of rows of the block table.
func (b *Batch) Sequences() int {
	if b.Width == 0 {
		return 0
	}
	return len(b.Tables) / b.Width
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	*b = Batch{Tokens: b.Tokens[:0], Positions: b.Positions[:0], Slots: b.Slots[:0], Seqs: b.Seqs[:0], Tables: b.Tables[:0], Samples: b.Samples[:0]}
}

// Pad appends padding rows until the batch has n rows.
func (b *Batch) Pad(n int) {
	for len(b.Tokens) < n {
		b.Tokens = append(b.Tokens, 0)
		b.Positions = append(b.Positions, 0)
		b.Slots = append(b.Slots, Padding)
		b.Seqs = append(b.Seqs, Padding)
	}
}

// Limits are the sizes a model's buffers were made for.
type Limits struct {
	Rows      int // most rows of a step
	Samples   int // most logits rows of a step
	Sequences int // most sequences of a step
	ModelLen  int // most positions of a sequence
	Blocks    int // KV blocks
	BlockSize int // positions in a block

	KV hal.DType // of the KV cache's numbers; 0 is F32

	ExpandPrompts bool // rows behind Batch.Decode attend in the expanded form
}

// KVType returns the element type of the KV cache.
func (l Limits) KVType() hal.DType {
	if l.KV == 0 {
		return hal.F32
	}
	return l.KV
}

// Check reports a batch that does not fit together, or not into l, for a vocabulary of vocab tokens.
func (b *Batch) Check(l Limits, vocab int) error {
	rows := len(b.Tokens)
	switch {
	case rows == 0:
		return fmt.Errorf("batch: no rows")
	case b.Decode < 0 || b.Decode > rows:
		return fmt.Errorf("batch: %d rows, %d of them continue an answer", rows, b.Decode)
	case rows > l.Rows:
		return fmt.Errorf("batch: %d rows, buffers hold %d", rows, l.Rows)
	case len(b.Samples) > l.Samples:
		return fmt.Errorf("batch: logits of %d rows wanted, buffers hold %d", len(b.Samples), l.Samples)
	case len(b.Positions) != rows || len(b.Slots) != rows || len(b.Seqs) != rows:
		return fmt.Errorf("batch: %d tokens, %d positions, %d slots, %d sequences: must be equal", rows, len(b.Positions), len(b.Slots), len(b.Seqs))
	case b.Width < 0 || b.Width > 0 && len(b.Tables)%b.Width != 0 || b.Width == 0 && len(b.Tables) > 0:
		return fmt.Errorf("batch: block table of %d entries in rows of %d", len(b.Tables), b.Width)
	case b.Sequences() > l.Sequences:
		return fmt.Errorf("batch: %d sequences, buffers hold %d", b.Sequences(), l.Sequences)
	case b.Width > kv.BlocksFor(l.ModelLen, l.BlockSize):
		return fmt.Errorf("batch: block table rows of %d blocks, the model length needs %d", b.Width, kv.BlocksFor(l.ModelLen, l.BlockSize))
	}
	for i := range rows {
		if err := b.checkRow(i, l, vocab); err != nil {
			return err
		}
	}
	for i, n := range b.Tables {
		if n < 0 || int(n) >= l.Blocks {
			return fmt.Errorf("batch: sequence %d: block %d is number %d of %d", i/b.Width, i%b.Width, n, l.Blocks)
		}
	}
	for _, r := range b.Samples {
		if r < 0 || int(r) >= rows {
			return fmt.Errorf("batch: logits wanted of row %d, have %d rows", r, rows)
		}
	}
	return nil
}

func (b *Batch) checkRow(i int, l Limits, vocab int) error {
	tok, pos, slot, seq := b.Tokens[i], b.Positions[i], b.Slots[i], b.Seqs[i]
	switch {
	case tok < 0 || int(tok) >= vocab:
		return fmt.Errorf("batch: row %d: token %d outside the vocabulary of %d", i, tok, vocab)
	case pos < 0 || int(pos) >= l.ModelLen:
		return fmt.Errorf("batch: row %d: position %d outside the model length %d", i, pos, l.ModelLen)
	case slot < Padding || int(slot) >= l.Blocks*l.BlockSize:
		return fmt.Errorf("batch: row %d: slot %d outside %d blocks of %d", i, slot, l.Blocks, l.BlockSize)
	case seq < Padding || int(seq) >= b.Sequences():
		return fmt.Errorf("batch: row %d: sequence %d, table has %d", i, seq, b.Sequences())
	case seq != Padding && int(pos) >= b.Width*l.BlockSize:
		return fmt.Errorf("batch: row %d: position %d, sequence %d has %d blocks of %d", i, pos, seq, b.Width, l.BlockSize)
	}
	return nil
}
