package weights

import "fmt"

// ScaleBlock is the side of the square blocks of an FP8 matrix that share a scale.
const ScaleBlock = 128

// Linear is the weight of a linear layer as stored.
type Linear struct {
	Weight Tensor // (out, in); BF16, F16, F32 or F8E4M3
	// Scale is there exactly if Weight is F8E4M3: (ceil(out/128), ceil(in/128)),
	// F32. The weight of row i and column j is float(Weight[i][j]) *
	// Scale[i/128][j/128]; blocks at the edges are partial.
	Scale *Tensor
}

// Linear gives the matrix with the full name (it ends in ".weight" in published
// files) and, if it is FP8, its scales under that name with "_scale_inv" added.
// What a configuration says about quantization plays no part: the stored type decides.
func (r *Reader) Linear(name string, out, in int) (Linear, error) {
	w, err := r.Tensor(name, Want{Shape: []int{out, in}})
	if err != nil {
		return Linear{}, err
	}
	if w.DType != F8E4M3 {
		return Linear{Weight: w}, nil
	}
	grid := []int{ceilDiv(out, ScaleBlock), ceilDiv(in, ScaleBlock)}
	s, err := r.Tensor(name+"_scale_inv", Want{Shape: grid, DTypes: []DType{F32}})
	if err != nil {
		return Linear{}, &scaleError{err, w}
	}
	return Linear{Weight: w, Scale: &s}, nil
}

// scaleError is a fault of the scales of a matrix. It renders the fault when it is read, as missingError does.
type scaleError struct {
	fault  error
	matrix Tensor
}

func (e *scaleError) Error() string {
	m := e.matrix
	return fmt.Sprintf("%v (it has the scales of %q, %s %v in blocks of %dx%d)", e.fault, m.Name, m.DType, m.Shape, ScaleBlock, ScaleBlock)
}

// Unwrap gives the fault of the scales themselves.
func (e *scaleError) Unwrap() error { return e.fault }

func ceilDiv(a, b int) int { return (a + b - 1) / b }
