package weights

import "fmt"

// Form is the number format in which a matrix is asked for.
type Form uint8

const (
	// Stored is as the file holds it.
	Stored Form = iota
	// BFloat16 is BF16: in place if it is stored so, else converted once, rounded to nearest even. A matrix stored as I8 is refused.
	BFloat16
	// Int8 is I8 with a scale for each row: in place if it is stored so, else converted once (QuantizeInt8).
	Int8
)

// String gives the form's name in errors.
func (f Form) String() string {
	switch f {
	case BFloat16:
		return BF16.String()
	case Int8:
		return I8.String()
	default:
		return "its stored type"
	}
}

// Matrix says which linear weight is wanted, and in which form.
type Matrix struct {
	Name    string // of the tensor, in full: it ends in ".weight" in published files
	Out, In int    // shape of the stored tensor
	Form    Form
	Heads   Heads // the zero value: all rows
}

// Heads picks rows [From, To) of every Size rows of a matrix: of each head those that are one thing.
type Heads struct{ Size, From, To int }

// none reports whether all rows are meant.
func (h Heads) none() bool { return h.Size == 0 }

// row gives the row of the matrix that is the i-th picked one.
func (h Heads) row(i int) int {
	if h.none() {
		return i
	}
	n := h.To - h.From
	return i/n*h.Size + h.From + i%n
}

// count gives how many of so many rows are picked.
func (h Heads) count(out int) int {
	if h.none() {
		return out
	}
	return out / h.Size * (h.To - h.From)
}

// check refuses heads that do not fit the matrix.
func (m Matrix) check() error {
	h := m.Heads
	if h.none() || h.Size > 0 && h.From >= 0 && h.From < h.To && h.To <= h.Size && m.Out%h.Size == 0 {
		return nil
	}
	return fmt.Errorf("weights: tensor %q: rows [%d, %d) of each %d do not fit %d rows", m.Name, h.From, h.To, h.Size, m.Out)
}
