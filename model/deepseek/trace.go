package deepseek

import "github.com/moerack/moerack/hal"

// Point names a place in the computation that can be observed.
type Point uint8

// The points, in forward order.
const (
	Embedding     Point = iota // (T, H)
	RouterLogits               // (T, E)
	RouterIDs                  // (T, K) I32
	RouterWeights              // (T, K)
	LayerOutput                // (T, H) the residual stream after a layer
	FinalNorm                  // (S, H) of the sampled rows
)

// Observe has f called at each point of later steps, with the layer and the tensor that was just computed. f may read it
// through its own copies on the model's stream; what it does slows the step. nil ends it.
func (m *Model) Observe(f func(p Point, layer int, t hal.Tensor)) { m.trace = f }

// Stream returns the model's stream, for an observer to read tensors from.
func (m *Model) Stream() hal.Stream { return m.st }

func (m *Model) observe(p Point, layer int, t hal.Tensor) {
	if m.trace != nil {
		m.trace(p, layer, t)
	}
}
