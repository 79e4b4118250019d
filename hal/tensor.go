package hal

import "fmt"

// DType is the element type of a tensor.
type DType uint8

// The element types. The zero value is no type, so that a forgotten field is noticed.
const (
	F32    DType = iota + 1 // IEEE 754 binary32
	BF16                    // upper half of a binary32
	F16                     // IEEE 754 binary16
	F8E4M3                  // OCP 8-bit float, 4 exponent bits, no infinities; NaN is 0x7f and 0xff
	I32                     // two's complement
	I8                      // two's complement, of weights −127 … 127
)

var dtypes = [...]struct {
	name string
	size int
}{F32: {"F32", 4}, BF16: {"BF16", 2}, F16: {"F16", 2}, F8E4M3: {"F8_E4M3", 1}, I32: {"I32", 4}, I8: {"I8", 1}}

// String returns the type's name as safetensors files spell it.
func (d DType) String() string {
	if d == 0 || int(d) >= len(dtypes) {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Size returns the bytes of one element; 0 for an unknown type.
func (d DType) Size() int {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// Buffer is memory of one device. It belongs to whoever allocated it and must not be used after Free or after its device
// was closed. Only the backend that made it looks inside.
type Buffer interface {
	// Bytes returns the size in bytes.
	Bytes() int64
	// Free gives the memory back. A second call does nothing. Work that uses the buffer must have finished.
	Free()
}

// Tensor is a matrix view of a buffer: Rows rows of Cols elements, row i starting at element Offset + i·Stride. A vector is
// a tensor of one row. It is a value; making views allocates nothing.
type Tensor struct {
	Buf    Buffer
	DType  DType
	Offset int // elements before the first row
	Rows   int
	Cols   int
	Stride int // elements from one row to the next, ≥ Cols
}

// Slice returns rows [from, to) of t. // (to-from, Cols)
func (t Tensor) Slice(from, to int) Tensor {
	t.Offset += from * t.Stride
	t.Rows = to - from
	return t
}

// Columns returns columns [from, to) of every row of t. // (Rows, to-from)
func (t Tensor) Columns(from, to int) Tensor {
	t.Offset += from
	t.Cols = to - from
	return t
}

// IsZero reports whether t is absent: an optional operand that was not given.
func (t Tensor) IsZero() bool { return t.Buf == nil }

// String describes shape and type for error messages.
func (t Tensor) String() string {
	if t.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%s(%d, %d)", t.DType, t.Rows, t.Cols)
}

// Weight is a linear map stored [out, in], row-major, as checkpoints hold it: F32, BF16 or F16 as they are, F8E4M3 or I8 with
// one scale for each BlockRows × BlockCols block (edge blocks may be partial), where the real value is
// float32(element) · scale. The blocks of I8 are whole rows: BlockRows is 1, and BlockCols the width of the whole matrix. A slice of
// a matrix keeps the scales of the whole one and says where it begins there.
type Weight struct {
	Data      Tensor // (out, in), its stride may exceed in
	Scale     Tensor // (≥ ceil((RowStart+out)/BlockRows), ≥ ceil((ColStart+in)/BlockCols)) F32, or none
	BlockRows int
	BlockCols int
	RowStart  int // row and column of the scaled matrix at which Data begins
	ColStart  int
}

// Slice returns rows [from, to) of w: outputs from … to−1. // (to-from, in)
func (w Weight) Slice(from, to int) Weight {
	w.Data = w.Data.Slice(from, to)
	w.RowStart += from
	return w
}

// Columns returns columns [from, to) of w: what it does with inputs from … to−1. // (out, to-from)
func (w Weight) Columns(from, to int) Weight {
	w.Data = w.Data.Columns(from, to)
	w.ColStart += from
	return w
}
