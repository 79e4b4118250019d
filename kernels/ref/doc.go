// Package ref is the plain-Go implementation of the kernels. It is always compiled, reads as the formulas, and is the
// definition that faster implementations are tested against.
package ref

import "github.com/moerack/moerack/kernels"

// Table returns the implementation.
func Table() kernels.Table {
	return kernels.Table{
		Name:         "ref (plain Go)",
		Embed:        Embed,
		RMSNorm:      RMSNorm,
		AddRMSNorm:   AddRMSNorm,
		MatMul:       MatMul,
		HeadMatMul:   HeadMatMul,
		Rope:         Rope,
		MLAAttention: MLAAttention,
		AttendKeys:   AttendKeys,
		Route:        Route,
		SwiGLU:       SwiGLU,
		Quantize:     Quantize,
		MatMul8:      MatMul8,
		SwiGLU8:      SwiGLU8,
		Combine:      Combine,
		Add:          Add,
		Finite:       Finite,
		BlockMax:     BlockMax,
		BlockSumExp:  BlockSumExp,
	}
}
