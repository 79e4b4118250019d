package faulty

import "github.com/moerack/moerack/hal"

// Each op asks the injector and then the stream inside.

// Embed may be told to fail.
func (s *stream) Embed(out hal.Tensor, table hal.Weight, ids hal.Tensor, first int) {
	if s.pass("Embed") {
		s.inner.Embed(out, table, ids, first)
	}
}

// RMSNorm may be told to fail.
func (s *stream) RMSNorm(out, x, weight hal.Tensor, eps float32) {
	if s.pass("RMSNorm") {
		s.inner.RMSNorm(out, x, weight, eps)
	}
}

// AddRMSNorm may be told to fail.
func (s *stream) AddRMSNorm(out, x, y, weight hal.Tensor, eps float32) {
	if s.pass("AddRMSNorm") {
		s.inner.AddRMSNorm(out, x, y, weight, eps)
	}
}

// MatMul may be told to fail.
func (s *stream) MatMul(out, x hal.Tensor, w hal.Weight) {
	if s.pass("MatMul") {
		s.inner.MatMul(out, x, w)
	}
}

// HeadMatMul may be told to fail.
func (s *stream) HeadMatMul(out, x hal.Tensor, w hal.Weight, h hal.HeadMatMul) {
	if s.pass("HeadMatMul") {
		s.inner.HeadMatMul(out, x, w, h)
	}
}

// Rope may be told to fail.
func (s *stream) Rope(out, x, positions, table hal.Tensor, r hal.Rope) {
	if s.pass("Rope") {
		s.inner.Rope(out, x, positions, table, r)
	}
}

// StoreKV may be told to fail.
func (s *stream) StoreKV(cache, rows, slots hal.Tensor) {
	if s.pass("StoreKV") {
		s.inner.StoreKV(cache, rows, slots)
	}
}

// MLAAttention may be told to fail.
func (s *stream) MLAAttention(out, q, cache, tables, seqs, positions hal.Tensor, a hal.MLAAttention) {
	if s.pass("MLAAttention") {
		s.inner.MLAAttention(out, q, cache, tables, seqs, positions, a)
	}
}

// MLAExpanded may be told to fail.
func (s *stream) MLAExpanded(out, q, cache, tables, seqs, positions hal.Tensor, keyUp, valueUp hal.Weight, a hal.MLAExpanded) {
	if s.pass("MLAExpanded") {
		s.inner.MLAExpanded(out, q, cache, tables, seqs, positions, keyUp, valueUp, a)
	}
}

// Route may be told to fail.
func (s *stream) Route(ids, weights, logits, bias, seqs hal.Tensor, r hal.Router) {
	if s.pass("Route") {
		s.inner.Route(ids, weights, logits, bias, seqs, r)
	}
}

// SwiGLU may be told to fail.
func (s *stream) SwiGLU(out, x hal.Tensor, gate, up hal.Weight) {
	if s.pass("SwiGLU") {
		s.inner.SwiGLU(out, x, gate, up)
	}
}

// Dispatch may be told to fail.
func (s *stream) Dispatch(rows, index, counts, x, ids hal.Tensor, first int) {
	if s.pass("Dispatch") {
		s.inner.Dispatch(rows, index, counts, x, ids, first)
	}
}

// GroupedSwiGLU may be told to fail.
func (s *stream) GroupedSwiGLU(out, x, counts hal.Tensor, gate, up []hal.Weight) {
	if s.pass("GroupedSwiGLU") {
		s.inner.GroupedSwiGLU(out, x, counts, gate, up)
	}
}

// GroupedMatMul may be told to fail.
func (s *stream) GroupedMatMul(out, x, counts hal.Tensor, w []hal.Weight) {
	if s.pass("GroupedMatMul") {
		s.inner.GroupedMatMul(out, x, counts, w)
	}
}

// Combine may be told to fail.
func (s *stream) Combine(out, rows, index, weights, shared hal.Tensor) {
	if s.pass("Combine") {
		s.inner.Combine(out, rows, index, weights, shared)
	}
}

// Add may be told to fail.
func (s *stream) Add(out, a, b hal.Tensor) {
	if s.pass("Add") {
		s.inner.Add(out, a, b)
	}
}

// GatherRows may be told to fail.
func (s *stream) GatherRows(out, x, index hal.Tensor) {
	if s.pass("GatherRows") {
		s.inner.GatherRows(out, x, index)
	}
}

// MarkNonFinite may be told to fail.
func (s *stream) MarkNonFinite(first, x hal.Tensor, tag int32) {
	if s.pass("MarkNonFinite") {
		s.inner.MarkNonFinite(first, x, tag)
	}
}

// PutInt32 may be told to fail.
func (s *stream) PutInt32(dst hal.Tensor, src []int32) {
	if s.pass("PutInt32") {
		s.inner.PutInt32(dst, src)
	}
}

// PutFloat32 may be told to fail.
func (s *stream) PutFloat32(dst hal.Tensor, src []float32) {
	if s.pass("PutFloat32") {
		s.inner.PutFloat32(dst, src)
	}
}

// GetInt32 may be told to fail.
func (s *stream) GetInt32(dst []int32, src hal.Tensor) {
	if s.pass("GetInt32") {
		s.inner.GetInt32(dst, src)
	}
}

// GetFloat32 may be told to fail.
func (s *stream) GetFloat32(dst []float32, src hal.Tensor) {
	if s.pass("GetFloat32") {
		s.inner.GetFloat32(dst, src)
	}
}
