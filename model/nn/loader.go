package nn

import (
	"errors"
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/weights"
)

// Loader brings tensors of a checkpoint onto a device: linear weights as they are stored, vectors as float32. It goes on after
// errors, so that one run names all that is wrong with a checkpoint.
type Loader struct {
	alloc  *Allocator
	reader *weights.Reader
	stream hal.Stream
	zero   hal.Tensor // (1, 1) I32: row 0
	errs   []error
}

// NewLoader returns a loader of the reader's checkpoint. What it makes belongs to the allocator.
func NewLoader(a *Allocator, r *weights.Reader, st hal.Stream) *Loader {
	return &Loader{alloc: a, reader: r, stream: st, zero: a.I32(1, 1)}
}

var dtypes = map[weights.DType]hal.DType{weights.F32: hal.F32, weights.BF16: hal.BF16, weights.F16: hal.F16, weights.F8E4M3: hal.F8E4M3}

// Linear imports a matrix, with its scales if it is FP8. // (out, in)
func (l *Loader) Linear(name string, out, in int) hal.Weight {
	t, err := l.reader.Linear(name, out, in)
	if err != nil {
		l.errs = append(l.errs, err)
		return hal.Weight{}
	}
	w := hal.Weight{Data: l.imported(t.Weight, out, in)}
	if t.Scale != nil {
		w.Scale = l.imported(*t.Scale, t.Scale.Shape[0], t.Scale.Shape[1])
		w.BlockRows, w.BlockCols = weights.ScaleBlock, weights.ScaleBlock
	}
	return w
}

// Vector reads n numbers of any float type and widens them to float32. // (1, n)
func (l *Loader) Vector(name string, n int) hal.Tensor {
	t, err := l.reader.Tensor(name, weights.Want{Shape: []int{n}, DTypes: []weights.DType{weights.F32, weights.BF16, weights.F16}})
	if err != nil {
		l.errs = append(l.errs, err)
		return hal.Tensor{}
	}
	v := l.alloc.F32(1, n)
	if src := l.imported(t, 1, n); !src.IsZero() && !v.IsZero() {
		l.stream.Embed(v, hal.Weight{Data: src}, l.zero) // looking up the only row widens it on the device
	}
	return v
}

func (l *Loader) imported(t weights.Tensor, rows, cols int) hal.Tensor {
	d, err := l.alloc.Device.Import(dtypes[t.DType], rows, cols, t.Data)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("tensor %q: %w", t.Name, err))
		return hal.Tensor{}
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
