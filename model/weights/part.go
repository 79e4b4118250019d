package weights

import "fmt"

// part is the rows, the columns or the heads [from, to) of a matrix; the zero value is all of it.
type part struct {
	axis     axis
	from, to int
}

// axis is what a part is cut along.
type axis uint8

const (
	rows axis = iota + 1
	columns
	heads
)

// bytes gives the size of the part of a stored matrix: some rows or columns. // t (rows, columns)
func (p part) bytes(t Tensor) int {
	if p.axis == 0 {
		return len(t.Data)
	}
	return len(t.Data) / t.Shape[p.axis-rows] * (p.to - p.from)
}

// String names the part in errors.
func (p part) String() string {
	what := [...]string{"all", "rows", "columns", "heads"}[p.axis]
	return fmt.Sprintf("%s [%d, %d)", what, p.from, p.to)
}

// checkPart refuses a part that is empty or leaves the size rows, columns or heads of a matrix.
func (c *Checkpoint) checkPart(name string, p part, size int) error {
	switch {
	case p.from < 0 || p.to > size || p.from > p.to:
		return fmt.Errorf("weights: %s: tensor %q: %s lie outside the matrix, want 0 ≤ from < to ≤ %d", c.dir, name, p, size)
	case p.from == p.to:
		return fmt.Errorf("weights: %s: tensor %q: %s are none: a rank without a part must not ask for one", c.dir, name, p)
	}
	return nil
}
