package cpu

import (
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

// The operands of an op are checked here, once, before a kernel sees them: buffer of this device, type, shape, extent.

// fail records the first error of the stream.
func (s *stream) fail(op, format string, args ...any) {
	if s.err == nil {
		s.err = s.dev.fault(op, format, args...)
	}
}

// buffer returns the operand's memory, nil after an error.
func (s *stream) buffer(op, name string, t hal.Tensor, rows, cols int) *buffer {
	b, ok := t.Buf.(*buffer)
	switch {
	case s.err != nil:
		return nil
	case s.dev.closed:
		s.fail(op, "the device is closed")
	case !ok || b == nil:
		s.fail(op, "%s: not a tensor of a cpu device", name)
	case b.dev != s.dev:
		s.fail(op, "%s: belongs to device %s", name, b.dev.name)
	case b.freed:
		s.fail(op, "%s: its buffer was freed", name)
	case t.Rows != rows || t.Cols != cols:
		s.fail(op, "%s: %s, want (%d, %d)", name, t, rows, cols)
	case t.Offset < 0 || t.Rows < 0 || t.Cols < 0 || t.Rows > 1 && t.Stride < t.Cols || extent(t)*int64(t.DType.Size()) > b.bytes:
		s.fail(op, "%s: view (offset %d, stride %d) of %s leaves its buffer of %d bytes", name, t.Offset, t.Stride, t, b.bytes)
	default:
		return b
	}
	return nil
}

// extent returns how many elements of its buffer a view reaches.
func extent(t hal.Tensor) int64 {
	if t.Rows == 0 {
		return int64(t.Offset)
	}
	return int64(t.Offset) + int64(t.Rows-1)*int64(t.Stride) + int64(t.Cols)
}

func (s *stream) mat(op, name string, t hal.Tensor, rows, cols int) kernels.Mat {
	b := s.buffer(op, name, t, rows, cols)
	if b == nil {
		return kernels.Mat{}
	}
	if t.DType != hal.F32 || b.f32 == nil {
		s.fail(op, "%s: %s, want F32", name, t)
		return kernels.Mat{}
	}
	return kernels.Mat{Data: b.f32[t.Offset:], Rows: rows, Cols: cols, Stride: t.Stride}
}

func (s *stream) ints(op, name string, t hal.Tensor, rows, cols int) kernels.Ints {
	b := s.buffer(op, name, t, rows, cols)
	if b == nil {
		return kernels.Ints{}
	}
	if t.DType != hal.I32 || b.i32 == nil {
		s.fail(op, "%s: %s, want I32", name, t)
		return kernels.Ints{}
	}
	return kernels.Ints{Data: b.i32[t.Offset:], Rows: rows, Cols: cols, Stride: t.Stride}
}

// vector returns a row of n indices, each of which must be in [low, high).
func (s *stream) vector(op, name string, t hal.Tensor, n int, low, high int) []int32 {
	v := s.ints(op, name, t, 1, n)
	if s.err != nil {
		return nil
	}
	row := v.Row(0)
	for i, x := range row {
		if int(x) < low || int(x) >= high {
			s.fail(op, "%s[%d] = %d, want %d … %d", name, i, x, low, high-1)
			return nil
		}
	}
	return row
}

// weight returns the kernels' view of w, whose shape must be (out, in); out or in < 0 means any. The view lives in one of the
// stream's two slots, because what is passed through a table of functions would else go to the heap at every op.
func (s *stream) weight(slot int, op, name string, w hal.Weight, out, in int) *kernels.Weight {
	k := &s.weights[slot]
	*k = kernels.Weight{}
	t := w.Data
	if out < 0 {
		out = t.Rows
	}
	if in < 0 {
		in = t.Cols
	}
	b := s.buffer(op, name, t, out, in)
	if b == nil {
		return k
	}
	k.Out, k.In = out, in
	from, n := t.Offset, out*in
	switch {
	case t.Stride != t.Cols:
		s.fail(op, "%s: rows have gaps (stride %d, %d columns)", name, t.Stride, t.Cols)
	case t.DType == hal.F32 && b.f32 != nil:
		k.Format, k.F32 = kernels.F32, b.f32[from:from+n]
	case t.DType == hal.BF16 && b.u16 != nil:
		k.Format, k.U16 = kernels.BF16, b.u16[from:from+n]
	case t.DType == hal.F16 && b.u16 != nil:
		k.Format, k.U16 = kernels.F16, b.u16[from:from+n]
	case t.DType == hal.F8E4M3 && b.u8 != nil:
		k.Format, k.U8 = kernels.F8E4M3, b.u8[from:from+n]
	default:
		s.fail(op, "%s: %s is not a weight", name, t)
	}
	if !w.Scale.IsZero() && s.err == nil {
		s.scale(op, name, w, k)
	}
	return k
}

func (s *stream) scale(op, name string, w hal.Weight, k *kernels.Weight) {
	if w.BlockRows < 1 || w.BlockCols < 1 || k.Format != kernels.F8E4M3 {
		s.fail(op, "%s: scales of %d×%d blocks for %s", name, w.BlockRows, w.BlockCols, w.Data)
		return
	}
	k.BlockRows, k.BlockCols = w.BlockRows, w.BlockCols
	rows := (k.Out + w.BlockRows - 1) / w.BlockRows
	k.ScaleCols = (k.In + w.BlockCols - 1) / w.BlockCols
	m := s.mat(op, "scale of a weight", w.Scale, rows, k.ScaleCols)
	if s.err == nil && m.Stride != m.Cols {
		s.fail(op, "%s: scale rows have gaps", name)
		return
	}
	k.Scale = m.Data
}
