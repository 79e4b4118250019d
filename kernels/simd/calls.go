//go:build cgo && (amd64 || arm64)

package simd

/*
#cgo noescape moerack_matmul
#cgo nocallback moerack_matmul
#cgo noescape moerack_swiglu
#cgo nocallback moerack_swiglu
#cgo noescape moerack_head_matmul
#cgo nocallback moerack_head_matmul
#cgo noescape moerack_quantize
#cgo nocallback moerack_quantize
#cgo noescape moerack_matmul8
#cgo nocallback moerack_matmul8
#cgo noescape moerack_swiglu8
#cgo nocallback moerack_swiglu8
#include "dispatch.h"
*/
import "C"

import (
	"unsafe"

	"github.com/moerack/moerack/kernels"
)

// floatsAt and bytesAt point at the first element, which may not exist.
func floatsAt(s []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }

func bytesAt(s []int8) *C.int8_t { return (*C.int8_t)(unsafe.Pointer(unsafe.SliceData(s))) }

// weightAt returns what C takes of a weight: its elements and the numbers of mr_weight.
func weightAt(w *kernels.Weight) (unsafe.Pointer, *C.float, [9]C.int64_t) {
	var data unsafe.Pointer
	switch w.Format {
	case kernels.F32:
		data = unsafe.Pointer(unsafe.SliceData(w.F32))
	case kernels.BF16, kernels.F16:
		data = unsafe.Pointer(unsafe.SliceData(w.U16))
	case kernels.F8E4M3:
		data = unsafe.Pointer(unsafe.SliceData(w.U8))
	case kernels.I8:
		data = unsafe.Pointer(unsafe.SliceData(w.I8))
	}
	return data, floatsAt(w.Scale), [9]C.int64_t{
		C.int64_t(w.Out), C.int64_t(w.In), C.int64_t(w.Stride), C.int64_t(w.ScaleCols), C.int64_t(w.BlockRows), C.int64_t(w.BlockCols),
		C.int64_t(w.RowStart), C.int64_t(w.ColStart), C.int64_t(w.Format),
	}
}

func matMul(id C.int) func(out, x kernels.Mat, w *kernels.Weight) {
	return func(out, x kernels.Mat, w *kernels.Weight) {
		data, scale, dims := weightAt(w)
		C.moerack_matmul(id, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(x.Data), C.int64_t(x.Stride), C.int64_t(x.Rows), data, scale, &dims[0])
	}
}

func swiGLU(id C.int) func(out, x kernels.Mat, gate, up *kernels.Weight) {
	return func(out, x kernels.Mat, gate, up *kernels.Weight) {
		a, aScale, aDims := weightAt(gate)
		b, bScale, bDims := weightAt(up)
		C.moerack_swiglu(id, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(x.Data), C.int64_t(x.Stride), C.int64_t(x.Rows),
			a, aScale, &aDims[0], b, bScale, &bDims[0])
	}
}

func headMatMul(id C.int) func(out, x kernels.Mat, w *kernels.Weight, h kernels.HeadMatMul) {
	return func(out, x kernels.Mat, w *kernels.Weight, h kernels.HeadMatMul) {
		data, scale, dims := weightAt(w)
		transpose := C.int64_t(0)
		if h.Transposed {
			transpose = 1
		}
		C.moerack_head_matmul(id, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(x.Data), C.int64_t(x.Stride), C.int64_t(x.Rows), data, scale, &dims[0],
			C.int64_t(h.Heads), C.int64_t(h.Rows), C.int64_t(h.From), C.int64_t(h.To), transpose, C.int64_t(h.InStride), C.int64_t(h.OutStride))
	}
}

func quantize(id C.int) func(out kernels.Rows8, x kernels.Mat) {
	return func(out kernels.Rows8, x kernels.Mat) {
		C.moerack_quantize(id, bytesAt(out.Data), C.int64_t(out.Stride), floatsAt(out.Scale), floatsAt(x.Data), C.int64_t(x.Stride), C.int64_t(x.Rows), C.int64_t(x.Cols))
	}
}

func matMul8(id C.int) func(out kernels.Mat, x kernels.Rows8, w *kernels.Weight) {
	return func(out kernels.Mat, x kernels.Rows8, w *kernels.Weight) {
		data, scale, dims := weightAt(w)
		C.moerack_matmul8(id, floatsAt(out.Data), C.int64_t(out.Stride), bytesAt(x.Data), C.int64_t(x.Stride), floatsAt(x.Scale), C.int64_t(x.Rows), data, scale, &dims[0])
	}
}

func swiGLU8(id C.int) func(out kernels.Mat, x kernels.Rows8, gate, up *kernels.Weight) {
	return func(out kernels.Mat, x kernels.Rows8, gate, up *kernels.Weight) {
		a, aScale, aDims := weightAt(gate)
		b, bScale, bDims := weightAt(up)
		C.moerack_swiglu8(id, floatsAt(out.Data), C.int64_t(out.Stride), bytesAt(x.Data), C.int64_t(x.Stride), floatsAt(x.Scale), C.int64_t(x.Rows),
			a, aScale, &aDims[0], b, bScale, &bDims[0])
	}
}
