package weights

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"
)

// Tensor is a view of one stored tensor, row-major. It is valid until the
// checkpoint is closed.
type Tensor struct {
	Name  string
	DType DType
	Shape []int // shared, read-only
	// Data is a read-only view into the file, aligned for DType; writing to it is
	// a fatal fault. Misaligned data of a file comes as a copy.
	Data []byte
}

// Want is what a request accepts.
type Want struct {
	Shape  []int   // nil: any; a scalar has an empty shape that is not nil
	DTypes []DType // none: BF16, F16, F32 and F8E4M3
}

// Tensor gives the view of a tensor that has the wanted shape and type. It marks
// the name as asked for and counts nothing; ranks ask through a Reader. A name
// that is missing is an error with the nearest names there are; they are looked for
// when its text is asked for.
func (c *Checkpoint) Tensor(name string, want Want) (Tensor, error) {
	if c.closed.Load() {
		return Tensor{}, fmt.Errorf("weights: %s: tensor %q: the checkpoint is closed", c.dir, name)
	}
	t, ok := c.tensors[name]
	file, misplaced := c.misplaced[name]
	switch {
	case !ok && misplaced:
		return Tensor{}, fmt.Errorf("weights: %s: tensor %q%s: the index says this file holds it, it does not (mixed versions?)", file, name, shapeText(want.Shape))
	case !ok:
		return Tensor{}, &missingError{c, name, slices.Clone(want.Shape)}
	case misplaced:
		return Tensor{}, fmt.Errorf("weights: %s: tensor %q: the index says %s holds it, it is in %s (mixed versions?)", c.dir, name, file, t.shard.name)
	}
	if want.Shape != nil && !slices.Equal(t.shape, want.Shape) {
		return Tensor{}, fmt.Errorf("weights: %s: tensor %q: has shape %v, want %v (do config.json and the weights belong together?)", c.path(t), name, t.shape, want.Shape)
	}
	accepted := want.DTypes
	if len(accepted) == 0 {
		accepted = weightTypes
	}
	if !t.dtype.in(accepted) {
		return Tensor{}, fmt.Errorf("weights: %s: tensor %q: has type %s, want %s", c.path(t), name, t.dtype, typesText(accepted))
	}
	t.asked.Store(true)
	return Tensor{Name: name, DType: t.dtype, Shape: t.shape, Data: c.view(t)}, nil
}

// view gives the data of a tensor, as an aligned copy if it must be.
func (c *Checkpoint) view(t *tensor) []byte {
	data := t.shard.data[t.begin:t.end:t.end]
	if len(data) == 0 || uintptr(unsafe.Pointer(&data[0]))%dtypes[t.dtype].align == 0 {
		return data
	}
	c.copyMu.Lock()
	defer c.copyMu.Unlock()
	if t.aligned == nil {
		words := make([]uint64, (len(data)+7)/8) // for its alignment
		t.aligned = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(data))
		copy(t.aligned, data)
		c.copies++
		c.copiedBytes += int64(len(data))
	}
	return t.aligned
}

func shapeText(shape []int) string {
	if shape == nil {
		return ""
	}
	return fmt.Sprintf(" %v", shape)
}

func typesText(list []DType) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = d.String()
	}
	return strings.Join(words, " or ")
}

// path is the file that holds a tensor.
func (c *Checkpoint) path(t *tensor) string { return filepath.Join(c.dir, t.shard.name) }
