package cpu

import (
	"context"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

// stream runs each op when it is called. Scratch grows to the largest need and stays, so a steady state allocates nothing.
type stream struct {
	dev     *device
	err     error // first error since the last Synchronize
	scratch []float32
	weights [2]kernels.Weight // views of the weights of the op that runs
	int8s   []int8            // quantized rows of the op that runs
	steps   []float32         // their scales
	starts  []int32           // (E) where the rows of each expert go, in Dispatch
	task    task
}

func (s *stream) floats(n int) []float32 {
	if cap(s.scratch) < n {
		s.scratch = make([]float32, n)
	}
	return s.scratch[:n]
}

// PutInt32 copies src into dst.
func (s *stream) PutInt32(dst hal.Tensor, src []int32) {
	if len(src) != dst.Rows*dst.Cols {
		s.fail("PutInt32", "%d values for %s", len(src), dst)
		return
	}
	m := s.ints("PutInt32", "dst", dst, dst.Rows, dst.Cols)
	for i := range m.Rows {
		copy(m.Row(i), src[i*m.Cols:])
	}
}

// PutFloat32 copies src into dst.
func (s *stream) PutFloat32(dst hal.Tensor, src []float32) {
	if len(src) != dst.Rows*dst.Cols {
		s.fail("PutFloat32", "%d values for %s", len(src), dst)
		return
	}
	m := s.mat("PutFloat32", "dst", dst, dst.Rows, dst.Cols)
	for i := range m.Rows {
		copy(m.Row(i), src[i*m.Cols:])
	}
}

// GetInt32 copies src into dst.
func (s *stream) GetInt32(dst []int32, src hal.Tensor) {
	if len(dst) != src.Rows*src.Cols {
		s.fail("GetInt32", "room for %d values of %s", len(dst), src)
		return
	}
	m := s.ints("GetInt32", "src", src, src.Rows, src.Cols)
	for i := range m.Rows {
		copy(dst[i*m.Cols:], m.Row(i))
	}
}

// GetFloat32 copies src into dst.
func (s *stream) GetFloat32(dst []float32, src hal.Tensor) {
	if len(dst) != src.Rows*src.Cols {
		s.fail("GetFloat32", "room for %d values of %s", len(dst), src)
		return
	}
	m := s.mat("GetFloat32", "src", src, src.Rows, src.Cols)
	for i := range m.Rows {
		copy(dst[i*m.Cols:], m.Row(i))
	}
}

// Err returns the first error since the last Synchronize.
func (s *stream) Err() error { return s.err }

// Synchronize returns the first error and forgets it; the work has run already.
func (s *stream) Synchronize(ctx context.Context) error {
	err := s.err
	s.err = nil
	if err == nil {
		err = ctx.Err()
	}
	return err
}
