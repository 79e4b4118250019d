package weights

import (
	"fmt"
	"sync"
)

// formed is a matrix in a form that it is not stored in. Whoever asks for it first makes it.
type formed struct {
	once   sync.Once
	linear Linear
	err    error
}

// formKey names it.
type formKey struct {
	name  string
	form  Form
	heads Heads
}

// converted gives a matrix in a form that it is not stored in: the same memory for all that ask.
func (c *Checkpoint) converted(m Matrix, l Linear) (Linear, error) {
	v, err := l.to(m.Form)
	if err != nil {
		return Linear{}, err
	}
	key := formKey{m.Name, m.Form, m.Heads}
	c.formedMu.Lock()
	f := c.formed[key]
	if f == nil {
		f = &formed{err: fmt.Errorf("weights: tensor %q: its conversion to %s broke off", m.Name, m.Form)}
		if c.formed == nil {
			c.formed = map[formKey]*formed{}
		}
		c.formed[key] = f
	}
	c.formedMu.Unlock()
	f.once.Do(func() { f.linear, f.err = c.convert(v) })
	return f.linear, f.err
}

// convert makes the result of a conversion in memory of the checkpoint.
func (c *Checkpoint) convert(v *Conversion) (Linear, error) {
	rows, name, in := v.Rows(), v.from.Weight.Name, v.from.Weight.Shape[1]
	size := rows * v.RowBytes()
	scales := 0
	if v.form == Int8 {
		scales = 4 * rows
	}
	data, err := c.arena.take(size)
	var scaleData []byte
	if err == nil {
		scaleData, err = c.arena.take(scales)
	}
	if err != nil {
		return Linear{}, fmt.Errorf("weights: tensor %q: memory for its conversion to %s, %d bytes: %w", name, v.form, size+scales, err)
	}
	v.Run(0, rows, data, scaleData)
	l := Linear{Weight: Tensor{Name: name, DType: v.DType(), Shape: []int{rows, in}, Data: data}}
	if v.form == Int8 {
		l.BlockRows, l.BlockCols = 1, max(in, 1)
		l.Scale = &Tensor{Name: name + scaleSuffix, DType: F32, Shape: []int{rows, 1}, Data: scaleData}
	}
	if h := v.from.Heads; !h.none() {
		l.Heads = Heads{Size: h.To - h.From, To: h.To - h.From}
	}
	c.copyMu.Lock()
	defer c.copyMu.Unlock()
	c.conversions++
	c.convertedBytes += int64(size + scales)
	return l, nil
}

// Converted gives how many matrices have been converted so far and the memory, outside the Go heap, that they take until Close.
func (c *Checkpoint) Converted() (matrices int, bytes int64) {
	c.copyMu.Lock()
	defer c.copyMu.Unlock()
	return c.conversions, c.convertedBytes
}

// ConversionBytes gives the memory that a matrix takes in its form beside the files, 0 if it is used in place. It marks the tensor as
// asked for.
func (c *Checkpoint) ConversionBytes(m Matrix) (int64, error) {
	l, err := c.stored(m)
	if err != nil || l.serves(m.Form) {
		return 0, err
	}
	v, err := l.to(m.Form)
	if err != nil {
		return 0, err
	}
	bytes := int64(v.Rows()) * int64(v.RowBytes())
	if m.Form == Int8 {
		bytes += 4 * int64(v.Rows())
	}
	return bytes, nil
}
