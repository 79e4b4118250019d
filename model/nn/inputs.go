package nn

import (
	"errors"
	"math"

	"github.com/moerack/moerack/hal"
)

// Inputs are the device's copies of a batch: one set of buffers, cut to the step's size.
type Inputs struct {
	Tokens    hal.Tensor // (1, rows) I32
	Positions hal.Tensor // (1, rows) I32
	Slots     hal.Tensor // (1, rows) I32
	Seqs      hal.Tensor // (1, rows) I32
	Tables    hal.Tensor // (sequences, width) I32, at least (1, 1)
	Samples   hal.Tensor // (1, samples) I32
}

// InputBuffers hold the inputs of steps up to certain limits.
type InputBuffers struct {
	full   Inputs
	tables hal.Tensor // (1, sequences·width) I32
}

// NewInputBuffers allocates them.
func NewInputBuffers(a *Allocator, l Limits, width int) *InputBuffers {
	return &InputBuffers{
		full: Inputs{
			Tokens:    a.I32(1, l.Rows),
			Positions: a.I32(1, l.Rows),
			Slots:     a.I32(1, l.Rows),
			Seqs:      a.I32(1, l.Rows),
			Samples:   a.I32(1, l.Samples),
		},
		tables: a.I32(1, max(1, l.Sequences*width)),
	}
}

// Put queues the copy of a checked batch and returns the inputs cut to its size.
func (ib *InputBuffers) Put(st hal.Stream, b *Batch) Inputs {
	n := b.Rows()
	in := Inputs{
		Tokens:    ib.full.Tokens.Columns(0, n),
		Positions: ib.full.Positions.Columns(0, n),
		Slots:     ib.full.Slots.Columns(0, n),
		Seqs:      ib.full.Seqs.Columns(0, n),
		Tables:    ib.tables.Columns(0, 1),
		Samples:   ib.full.Samples.Columns(0, len(b.Samples)),
	}
	st.PutInt32(in.Tokens, b.Tokens)
	st.PutInt32(in.Positions, b.Positions)
	st.PutInt32(in.Slots, b.Slots)
	st.PutInt32(in.Seqs, b.Seqs)
	if len(b.Samples) > 0 {
		st.PutInt32(in.Samples, b.Samples)
	}
	if b.Sequences() > 0 {
		in.Tables = ib.tables
		in.Tables.Rows, in.Tables.Cols, in.Tables.Stride = b.Sequences(), b.Width, b.Width
		st.PutInt32(in.Tables, b.Tables)
	}
	return in
}

// Allocator makes tensors on a device and remembers errors and what it made, so that loading code reads as a list. Without a
// device it only counts.
type Allocator struct {
	Device hal.Device
	made   []hal.Buffer
	errs   []error
	bytes  int64
}

// F32 allocates a float32 tensor. // (rows, cols)
func (a *Allocator) F32(rows, cols int) hal.Tensor { return a.alloc(hal.F32, rows, cols) }

// I32 allocates an int32 tensor. // (rows, cols)
func (a *Allocator) I32(rows, cols int) hal.Tensor { return a.alloc(hal.I32, rows, cols) }

// KV allocates a tensor of a KV cache. // (rows, cols)
func (a *Allocator) KV(d hal.DType, rows, cols int) hal.Tensor { return a.alloc(d, rows, cols) }

// Bytes returns the size of everything asked for, at most the largest number.
func (a *Allocator) Bytes() int64 { return a.bytes }

func (a *Allocator) alloc(d hal.DType, rows, cols int) hal.Tensor {
	n := int64(math.MaxInt64)
	if rows < 1 || int64(cols) <= math.MaxInt64/int64(d.Size())/int64(rows) {
		n = int64(rows) * int64(cols) * int64(d.Size())
	}
	a.bytes += min(n, math.MaxInt64-a.bytes)
	if a.Device == nil {
		return hal.Tensor{}
	}
	t, err := a.Device.Alloc(d, rows, cols)
	return a.keep(t, err)
}

func (a *Allocator) keep(t hal.Tensor, err error) hal.Tensor {
	if err != nil {
		a.errs = append(a.errs, err)
		return hal.Tensor{}
	}
	a.made = append(a.made, t.Buf)
	return t
}

// Err returns what went wrong so far.
func (a *Allocator) Err() error { return errors.Join(a.errs...) }

// Free gives back everything that was made.
func (a *Allocator) Free() {
	for _, b := range a.made {
		b.Free()
	}
	a.made = nil
}
