package cpu

import (
	"fmt"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

// block is a checked operand of a communicator: rows of F32 or I32. // (rows, cols)
type block struct {
	dtype      hal.DType
	rows, cols int
	f          kernels.Mat
	i          kernels.Ints
}

// block checks an operand of rows × cols elements; rows < 0 or cols < 0 means any.
func (s *stream) block(op, name string, t hal.Tensor, rows, cols int) block {
	if rows < 0 {
		rows = t.Rows
	}
	if cols < 0 {
		cols = t.Cols
	}
	b := block{dtype: t.DType, rows: rows, cols: cols}
	if t.DType == hal.I32 {
		b.i = s.ints(op, name, t, rows, cols)
	} else {
		b.f = s.mat(op, name, t, rows, cols)
	}
	return b
}

func (b block) like(o block) bool { return b.dtype == o.dtype && b.rows == o.rows && b.cols == o.cols }

// String describes type and shape.
func (b block) String() string { return fmt.Sprintf("%s(%d, %d)", b.dtype, b.rows, b.cols) }

// copyRows copies n rows.
func copyRows(dst *block, to int, src *block, from, n int) {
	if dst.dtype == hal.I32 {
		for r := range n {
			copy(dst.i.Row(to+r), src.i.Row(from+r))
		}
		return
	}
	for r := range n {
		copy(dst.f.Row(to+r), src.f.Row(from+r))
	}
}

// share returns the elements [from, to) of n that member r of size works on; borders are at cache lines.
func share(n, r, size int) (from, to int) {
	const line = 16
	lines := (n + line - 1) / line
	return min(lines*r/size*line, n), min(lines*(r+1)/size*line, n)
}
