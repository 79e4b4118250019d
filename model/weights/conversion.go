package weights

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Conversion turns the rows of a stored matrix into BF16 or I8. It holds no data.
type Conversion struct {
	from Linear
	form Form
}

// NewConversion gives the conversion of a matrix to its form, also if it is stored so. Its Heads must be gathered: the result has the
// picked rows alone. It marks the tensor as asked for and counts nothing.
func (c *Checkpoint) NewConversion(m Matrix) (*Conversion, error) {
	l, err := c.stored(m)
	if err != nil {
		return nil, err
	}
	return l.to(m.Form)
}

// to refuses what cannot be converted.
func (l Linear) to(f Form) (*Conversion, error) {
	if f == Stored || l.Weight.DType == I8 {
		return nil, fmt.Errorf("weights: tensor %q: %s cannot be converted to %s", l.Weight.Name, l.Weight.DType, f)
	}
	return &Conversion{l, f}, nil
}

// Sources gives what is converted: the stored matrix and, if it has some, its scales.
func (v *Conversion) Sources() []Tensor {
	if v.from.Scale != nil {
		return []Tensor{v.from.Weight, *v.from.Scale}
	}
	return []Tensor{v.from.Weight}
}

// Rows is how many rows the result has.
func (v *Conversion) Rows() int { return v.from.Heads.count(v.from.Weight.Shape[0]) }

// RowBytes is the size of a row of the result.
func (v *Conversion) RowBytes() int { return v.from.Weight.Shape[1] * int(dtypes[v.DType()].bits/8) }

// DType is the type of the result.
func (v *Conversion) DType() DType {
	if v.form == Int8 {
		return I8
	}
	return BF16
}

// chunkElements is how many elements a goroutine takes at a time, in whole rows.
const chunkElements = 1 << 16

// Run converts rows [from, to) of the result into data, and for I8 their scales, little-endian F32, into scales. Each row depends on
// itself alone. It works on all cores, holds one row of floats for each, and returns when all is done.
// // data (to-from, RowBytes), scales (to-from, 4)
func (v *Conversion) Run(from, to int, data, scales []byte) {
	each := max(1, chunkElements/max(1, v.from.Weight.Shape[1]))
	chunks := (to - from + each - 1) / each
	work := func(buf []float32, chunk int) {
		for i := chunk * each; i < min((chunk+1)*each, to-from); i++ {
			v.row(buf, from+i, data[i*v.RowBytes():][:v.RowBytes()], scales, i)
		}
	}
	workers := min(runtime.GOMAXPROCS(0), chunks)
	if workers <= 1 {
		buf := make([]float32, v.from.Weight.Shape[1])
		for i := range chunks {
			work(buf, i)
		}
		return
	}
	var next atomic.Int64
	var fault atomic.Pointer[any]
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			debug.SetPanicOnFault(true) // a file that was cut meanwhile is the caller's panic, not the end of the process
			defer func() {
				if p := recover(); p != nil {
					fault.CompareAndSwap(nil, &p)
				}
			}()
			buf := make([]float32, v.from.Weight.Shape[1])
			for i := next.Add(1) - 1; i < int64(chunks) && fault.Load() == nil; i = next.Add(1) - 1 {
				work(buf, int(i))
			}
		})
	}
	wg.Wait()
	if p := fault.Load(); p != nil {
		panic(*p)
	}
}

// row converts one row, and writes its scale as the i-th. // buf (in)
func (v *Conversion) row(buf []float32, row int, data, scales []byte, i int) {
	v.from.widen(buf, v.from.Heads.row(row))
	if v.form == Int8 {
		binary.LittleEndian.PutUint32(scales[4*i:], math.Float32bits(QuantizeInt8(data, buf)))
		return
	}
	for k, x := range buf {
		binary.LittleEndian.PutUint16(data[2*k:], toBF16(x))
	}
}
