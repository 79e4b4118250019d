package nn

import (
	"errors"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/weights"
)

// Loader brings tensors of a source onto a device: linear weights in the form that is asked for, vectors as float32. It goes on after
// errors, so that one run names all that is wrong with a checkpoint. Where the allocator has no device it only asks.
type Loader struct {
	alloc   *Allocator
	source  Source
	stream  hal.Stream // nil without a device
	zero    hal.Tensor // (1, 1) I32: row 0
	imports map[*byte]hal.Tensor
	errs    []error
}

// Source gives tensors by name; *weights.Reader is one, and an Inventory.
type Source interface {
	Tensor(name string, want weights.Want) (weights.Tensor, error)
	Linear(m weights.Matrix) (weights.Linear, error)
	LinearRows(m weights.Matrix, from, to int) (weights.Linear, error)
	LinearColumns(m weights.Matrix, from, to int) (weights.Linear, error)
	LinearHeads(m weights.Matrix, from, to int) (l weights.Linear, first int, err error)
}

// NewLoader returns a loader of the source's tensors. What it makes belongs to the allocator.
func NewLoader(a *Allocator, s Source, st hal.Stream) *Loader {
	return &Loader{alloc: a, source: s, stream: st, zero: a.I32(1, 1), imports: map[*byte]hal.Tensor{}}
}

var dtypes = map[weights.DType]hal.DType{
	weights.F32: hal.F32, weights.BF16: hal.BF16, weights.F16: hal.F16, weights.F8E4M3: hal.F8E4M3, weights.I8: hal.I8,
}

// Linear imports a matrix, with its scales if it has some. // (out, in)
func (l *Loader) Linear(m weights.Matrix) hal.Weight {
	t, err := l.source.Linear(m)
	return l.weight(t, 0, err)
}

// Rows imports outputs [from, to) of a matrix alone; only scales are those of all of it. An empty part is an error:
// who has no rows asks for none. // (to-from, in)
func (l *Loader) Rows(m weights.Matrix, from, to int) hal.Weight {
	t, err := l.source.LinearRows(m, from, to)
	return l.weight(t, from, err)
}

// Columns imports a matrix and views what it does with inputs [from, to). The device sees the whole matrix: where imports are
// used in place, the other columns are never read. An empty part is an error. // (out, to-from)
func (l *Loader) Columns(m weights.Matrix, from, to int) hal.Weight {
	t, err := l.source.LinearColumns(m, from, to)
	if err != nil {
		return l.weight(t, 0, err)
	}
	return l.weight(t, 0, nil).Columns(from, to)
}

// Heads imports heads [from, to) of a matrix with m.Heads, and returns which rows of each are meant: a matrix that is used in place
// has others too. // ((to-from)·Size, in)
func (l *Loader) Heads(m weights.Matrix, from, to int) (hal.Weight, weights.Heads) {
	t, first, err := l.source.LinearHeads(m, from, to)
	return l.weight(t, first, err), t.Heads
}

// weight imports what the source gave: rows first … of the matrix that its scales belong to.
func (l *Loader) weight(t weights.Linear, first int, err error) hal.Weight {
	if err != nil {
		l.errs = append(l.errs, err)
		return hal.Weight{}
	}
	w := hal.Weight{Data: l.imported(t.Weight, t.Weight.Shape[0], t.Weight.Shape[1]), RowStart: first}
	if t.Scale != nil {
		w.Scale = l.imported(*t.Scale, t.Scale.Shape[0], t.Scale.Shape[1])
		w.BlockRows, w.BlockCols = t.BlockRows, t.BlockCols
	}
	return w
}

// Vector reads n numbers of any float type and widens them to float32. // (1, n)
func (l *Loader) Vector(name string, n int) hal.Tensor {
	t, err := l.source.Tensor(name, weights.Want{Shape: []int{n}, DTypes: []weights.DType{weights.F32, weights.BF16, weights.F16}})
	if err != nil {
		l.errs = append(l.errs, err)
		return hal.Tensor{}
	}
	v := l.alloc.F32(1, n)
	if src := l.imported(t, 1, n); !src.IsZero() && !v.IsZero() {
		l.stream.Embed(v, hal.Weight{Data: src}, l.zero, 0) // looking up the only row widens it on the device
	}
	return v
}

// imported imports a tensor, or returns the import that it had before.
func (l *Loader) imported(t weights.Tensor, rows, cols int) hal.Tensor {
	if l.alloc.Device == nil {
		return hal.Tensor{}
	}
	if len(t.Data) > 0 {
		if d, ok := l.imports[&t.Data[0]]; ok && d.Rows == rows && d.Cols == cols && d.DType == dtypes[t.DType] {
			return d
		}
	}
	d, err := l.alloc.Device.Import(dtypes[t.DType], rows, cols, t.Data)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("tensor %q: %w", t.Name, err))
		return hal.Tensor{}
	}
	if len(t.Data) > 0 {
		l.imports[&t.Data[0]] = d
	}
	return l.alloc.keep(d, nil)
}

// mostErrors is how many faults of a checkpoint an error lists before it only counts them.
const mostErrors = 8

// Err returns what was wrong so far, at most some faults in full.
func (l *Loader) Err() error {
	errs := l.errs
	if err := l.alloc.Err(); err != nil {
		errs = append(errs, err)
	}
	if more := len(errs) - mostErrors; more > 0 {
		errs = append(errs[:mostErrors:mostErrors], fmt.Errorf("and %d more faults of the same checkpoint", more))
	}
	return errors.Join(errs...)
}
