package synth

import "github.com/moerack/moerack/model/weights"

// DType is how the linear weights of a checkpoint are stored.
type DType string

// The number formats.
const (
	// BFloat16 stores all tensors but the routers' biases as BF16.
	BFloat16 DType = "bfloat16"
	// Float32 stores all tensors as F32.
	Float32 DType = "float32"
	// FP8 stores the linear weights as F8_E4M3 with a scale for each block of 128 by 128; embedding, heads, norms, routers and
	// the input projection of MTP modules are BF16, as published.
	FP8 DType = "fp8"
)

// DTypes returns the formats there are.
func DTypes() []DType { return []DType{BFloat16, Float32, FP8} }

// size returns the bytes of one element.
func size(d weights.DType) int64 {
	switch d {
	case weights.F32:
		return 4
	case weights.BF16:
		return 2
	default: // F8E4M3
		return 1
	}
}
