package nn

import "github.com/moerack/moerack/model/weights"

// Inventory is a source without data: it notes what is asked for, in this order.
type Inventory struct {
	Tensors []Request
}

// Request is a tensor that was asked for, whole or in part.
type Request struct {
	weights.Matrix
	Vector bool // of In numbers, not a matrix
}

// Tensor notes a vector.
func (i *Inventory) Tensor(name string, want weights.Want) (weights.Tensor, error) {
	i.Tensors = append(i.Tensors, Request{weights.Matrix{Name: name, Out: 1, In: want.Shape[0]}, true})
	return weights.Tensor{Name: name, Shape: want.Shape}, nil
}

// Linear notes a matrix.
func (i *Inventory) Linear(m weights.Matrix) (weights.Linear, error) {
	i.Tensors = append(i.Tensors, Request{m, false})
	return weights.Linear{Weight: weights.Tensor{Name: m.Name, Shape: []int{m.Out, m.In}}, Heads: m.Heads}, nil
}

// LinearRows notes the whole matrix.
func (i *Inventory) LinearRows(m weights.Matrix, _, _ int) (weights.Linear, error) {
	return i.Linear(m)
}

// LinearColumns notes the whole matrix.
func (i *Inventory) LinearColumns(m weights.Matrix, _, _ int) (weights.Linear, error) {
	return i.Linear(m)
}

// LinearHeads notes the whole matrix.
func (i *Inventory) LinearHeads(m weights.Matrix, _, _ int) (weights.Linear, int, error) {
	l, err := i.Linear(m)
	return l, 0, err
}
