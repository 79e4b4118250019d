package nn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/weights"
)

// DType is the number format that a model is run in, by the names that users give.
type DType string

// The number formats. Activations are float32 in all, but for the inputs of dot products in W8A8.
const (
	Auto     DType = "auto"     // as stored
	Float32  DType = "float32"  // as stored, and the maths in float32: refused for a model whose weights are int8
	BFloat16 DType = "bfloat16" // weights in bfloat16
	W8A8     DType = "w8a8"     // weights in int8 with a scale for each output, inputs of their dot products in int8 with one for each token
)

// DTypes lists the legal names.
func DTypes() []DType { return []DType{Auto, Float32, BFloat16, W8A8} }

// Form returns the form in which the weights of a model are wanted, or why it cannot be run so.
func (d DType) Form(c *config.Config) (weights.Form, error) {
	if !slices.Contains(DTypes(), d) {
		return 0, fmt.Errorf("dtype=%q: must be %s", string(d), d.legal())
	}
	if c.Quantization.W8A8 && (d == Float32 || d == BFloat16) {
		return 0, fmt.Errorf("dtype=%s: the model's weights are int8: run it with %s or %s, or take the checkpoint that it was made of", d, Auto, W8A8)
	}
	switch d {
	case BFloat16:
		return weights.BFloat16, nil
	case W8A8:
		return weights.Int8, nil
	default:
		return weights.Stored, nil
	}
}

func (d DType) legal() string {
	names := make([]string, len(DTypes()))
	for i, n := range DTypes() {
		names[i] = string(n)
	}
	return strings.Join(names, " or ")
}
