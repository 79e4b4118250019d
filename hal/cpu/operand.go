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
	case !inside(t, b.bytes):
		s.fail(op, "%s: view (offset %d, stride %d) of %s leaves its buffer of %d bytes", name, t.Offset, t.Stride, t, b.bytes)
	default:
		return b
	}
	return nil
}

// inside reports whether a view lies in a buffer of so many bytes. No size is taken for granted, so no product may overflow.
func inside(t hal.Tensor, bytes int64) bool {
	if t.DType.Size() == 0 {
		return false
	}
	n := bytes / int64(t.DType.Size())
	if t.Offset < 0 || t.Rows < 0 || t.Cols < 0 || int64(t.Offset) > n || int64(t.Cols) > n {
		return false
	}
	if t.Rows > 1 && (t.Stride < t.Cols || int64(t.Rows-1) > n/int64(max(t.Stride, 1))) {
		return false
	}
	return extent(t) <= n
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

// vector returns a row of n indices, each of which must be low … high; math.MinInt32 as low allows any negative index, which means
// none.
func (s *stream) vector(op, name string, t hal.Tensor, n int, low, high int) []int32 {
	v := s.ints(op, name, t, 1, n)
	if s.err != nil {
		return nil
	}
	row := v.Row(0)
	for i, x := range row {
		if int(x) < low || int(x) > high {
			s.fail(op, "%s[%d] = %d, want %d … %d", name, i, x, low, high)
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
	k.Out, k.In, k.Stride = out, in, t.Stride
	from, to := t.Offset, int(extent(t))
	switch {
	case t.DType == hal.F32 && b.f32 != nil:
		k.Format, k.F32 = kernels.F32, b.f32[from:to]
	case t.DType == hal.BF16 && b.u16 != nil:
		k.Format, k.U16 = kernels.BF16, b.u16[from:to]
	case t.DType == hal.F16 && b.u16 != nil:
		k.Format, k.U16 = kernels.F16, b.u16[from:to]
	case t.DType == hal.F8E4M3 && b.u8 != nil:
		k.Format, k.U8 = kernels.F8E4M3, b.u8[from:to]
	case t.DType == hal.I8 && b.i8 != nil:
		k.Format, k.I8 = kernels.I8, b.i8[from:to]
		s.checkInt8(op, name, w)
	default:
		s.fail(op, "%s: %s is not a weight", name, t)
	}
	if !w.Scale.IsZero() && s.err == nil {
		s.scale(op, name, w, k)
	}
	return k
}

// scale adds the scales of w to its view; they must cover it from (RowStart, ColStart) on.
func (s *stream) scale(op, name string, w hal.Weight, k *kernels.Weight) {
	if w.BlockRows < 1 || w.BlockCols < 1 || k.Format != kernels.F8E4M3 && k.Format != kernels.I8 {
		s.fail(op, "%s: scales of %d×%d blocks for %s", name, w.BlockRows, w.BlockCols, w.Data)
		return
	}
	if !covers(w.Scale.Rows, w.BlockRows, w.RowStart, k.Out) || !covers(w.Scale.Cols, w.BlockCols, w.ColStart, k.In) {
		s.fail(op, "%s: scales %s of %d×%d blocks do not cover %s at row %d, column %d", name, w.Scale, w.BlockRows, w.BlockCols, w.Data, w.RowStart, w.ColStart)
		return
	}
	m := s.mat(op, "scale of a weight", w.Scale, w.Scale.Rows, w.Scale.Cols)
	k.Scale, k.ScaleCols = m.Data, m.Stride
	k.BlockRows, k.BlockCols, k.RowStart, k.ColStart = w.BlockRows, w.BlockCols, w.RowStart, w.ColStart
}

// covers reports whether so many blocks of a size hold the elements [start, start+n).
func covers(blocks, size, start, n int) bool {
	end := start + n
	return start >= 0 && end >= start && blocks > 0 && (end-1)/size < blocks
}
