package synth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Options say which checkpoint is wanted.
type Options struct {
	Shape  Shape
	DType  DType  // "": Shape.DType
	Layers int    // decoder layers, at least one of them with experts; 0: those of the shape
	Vocab  int    // tokens, at least 2; 0: those of the shape
	Seed   uint64 // of the numbers
}

// Limits far above any published model. Names and places of all tensors are held, some hundred bytes for each.
const (
	maxLayers = 256
	maxVocab  = 1 << 24 // as model configurations have it
)

// Checkpoint is one that can be written. It holds names and sizes only, and never changes.
type Checkpoint struct {
	seed    uint64
	config  modelConfig
	tensors []tensor
}

// New lists the tensors. Its error joins the faults of all options.
func New(o Options) (*Checkpoint, error) {
	c := o.Shape.config
	if len(c.Architectures) == 0 {
		return nil, errors.New("synth: no shape: take one of Shapes")
	}
	if o.DType == "" {
		o.DType = o.Shape.DType
	}
	var faults []error
	faultf := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !slices.Contains(DTypes(), o.DType) {
		faultf("dtype %q: must be %s", o.DType, words(DTypes()))
	}
	if dense := c.FirstKDenseReplace; o.Layers != 0 && (o.Layers <= dense || o.Layers > maxLayers) {
		faultf("%d layers: must be %d … %d (the first %d of shape %s are dense, and one with experts must follow)", o.Layers, dense+1, maxLayers, dense, o.Shape.Name)
	}
	if o.Vocab != 0 && (o.Vocab < 2 || o.Vocab > maxVocab) {
		faultf("a vocabulary of %d: must be 2 … %d", o.Vocab, maxVocab)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	c.adapt(o)
	return &Checkpoint{seed: o.Seed, config: c, tensors: list(&c, o.DType)}, nil
}

// adapt puts what the options change into the configuration.
func (c *modelConfig) adapt(o Options) {
	if o.Layers != 0 {
		c.NumHiddenLayers = o.Layers
	}
	if o.Vocab != 0 {
		c.VocabSize = o.Vocab
	}
	if max(c.BOSTokenID, c.EOSTokenID) >= c.VocabSize { // there must be such tokens
		c.BOSTokenID, c.EOSTokenID = 0, 1
	}
	c.TorchDType = string(BFloat16)
	switch o.DType {
	case Float32:
		c.TorchDType = string(Float32)
	case FP8:
		c.QuantizationConfig = fp8Quantization()
	default:
	}
}

// Bytes returns the size of all tensors.
func (c *Checkpoint) Bytes() int64 {
	n := int64(0)
	for _, t := range c.tensors {
		n += t.bytes()
	}
	return n
}

// Parameters returns the number of weights, scales of FP8 blocks not counted.
func (c *Checkpoint) Parameters() int64 {
	n := int64(0)
	for _, t := range c.tensors {
		if t.fill != scales {
			n += t.count()
		}
	}
	return n
}

// Tensors returns the number of tensors.
func (c *Checkpoint) Tensors() int { return len(c.tensors) }

// words lists names for people.
func words[T ~string](list []T) string {
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = string(name)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
