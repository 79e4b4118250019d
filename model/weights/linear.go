package weights

import "fmt"

// ScaleBlock is the side of the square blocks of an FP8 matrix that share a scale.
const ScaleBlock = 128

// Linear is the weight of a linear layer. Where it has scales, the weight of row i and column j is
// float(Weight[i][j]) * Scale[i/BlockRows][j/BlockCols]; blocks at the edges are partial.
type Linear struct {
	Weight Tensor // (out, in); BF16, F16, F32, F8E4M3 or I8
	// Scale is there exactly if Weight is F8E4M3 or I8, F32: (ceil(out/128), ceil(in/128))
	// in square blocks, or (out, 1), one for each row.
	Scale     *Tensor
	BlockRows int
	BlockCols int
	// Heads says which rows of Weight are meant, if heads were asked for: a matrix
	// that is used in place has the other rows too.
	Heads Heads
}

// Linear gives the matrix and its scales: those of FP8 have its name with
// "_scale_inv" added, those of I8 with "_scale". What a configuration says about
// quantization plays no part: the stored type decides. A matrix that has to be
// converted for its form is converted when it is first asked for, by all cores, for
// all readers of the checkpoint; the others wait.
func (r *Reader) Linear(m Matrix) (Linear, error) {
	l, err := r.c.linear(m)
	if err != nil {
		return Linear{}, err
	}
	r.countLinear(m, l, part{})
	return l, nil
}

// LinearRows gives rows [from, to) of the matrix that Linear gives: Weight holds
// them alone, (to-from, in), while Scale stays that of the whole matrix, whose row
// of blocks for row i of the part is (from+i)/BlockRows. Only the part counts. An empty
// part is refused: who has no rows asks for none. It takes a matrix without Heads.
func (r *Reader) LinearRows(m Matrix, from, to int) (Linear, error) {
	p := part{rows, from, to}
	if !m.Heads.none() {
		return Linear{}, fmt.Errorf("weights: tensor %q: rows of a matrix whose heads are picked", m.Name)
	}
	if err := r.c.checkPart(m.Name, p, m.Out); err != nil {
		return Linear{}, err
	}
	l, err := r.c.linear(m)
	if err != nil {
		return Linear{}, err
	}
	r.countLinear(m, l, p)
	return l.cut(from, to), nil
}

// LinearHeads is LinearRows for heads [from, to) of a matrix with Heads. It gives also the first row, which the scales need:
// Weight is rows first … of the matrix that Scale belongs to.
func (r *Reader) LinearHeads(m Matrix, from, to int) (l Linear, first int, err error) {
	if m.Heads.none() {
		return Linear{}, 0, fmt.Errorf("weights: tensor %q: heads of a matrix that names none", m.Name)
	}
	if err := m.check(); err != nil {
		return Linear{}, 0, err
	}
	if err := r.c.checkPart(m.Name, part{heads, from, to}, m.Out/m.Heads.Size); err != nil {
		return Linear{}, 0, err
	}
	if l, err = r.c.linear(m); err != nil {
		return Linear{}, 0, err
	}
	size := l.Heads.Size
	r.countLinear(m, l, part{rows, from * size, to * size})
	return l.cut(from*size, to*size), from * size, nil
}

// LinearColumns gives the whole matrix, as Linear does, to one who uses only
// columns [from, to) of it: rows are stored one after the other, so the part is no
// run of bytes. Only the part counts. An empty part is refused.
func (r *Reader) LinearColumns(m Matrix, from, to int) (Linear, error) {
	p := part{columns, from, to}
	if err := r.c.checkPart(m.Name, p, m.In); err != nil {
		return Linear{}, err
	}
	l, err := r.c.linear(m)
	if err != nil {
		return Linear{}, err
	}
	r.countLinear(m, l, p)
	return l, nil
}

// cut gives rows [from, to) with the scales of all rows.
func (l Linear) cut(from, to int) Linear {
	row := len(l.Weight.Data) / l.Weight.Shape[0]
	l.Weight.Data = l.Weight.Data[from*row : to*row : to*row]
	l.Weight.Shape = []int{to - from, l.Weight.Shape[1]}
	return l
}

// linear gives a matrix in the wanted form.
func (c *Checkpoint) linear(m Matrix) (Linear, error) {
	l, err := c.stored(m)
	if err != nil || l.serves(m.Form) {
		return l, err
	}
	return c.converted(m, l)
}

// serves reports whether the stored matrix can be used in place for a form.
func (l Linear) serves(f Form) bool {
	return f == Stored || f == BFloat16 && l.Weight.DType == BF16 || f == Int8 && l.Weight.DType == I8
}

// linearTypes are the types a stored matrix may have.
var linearTypes = append(weightTypes[:len(weightTypes):len(weightTypes)], I8)

// stored gives a matrix as the files hold it.
func (c *Checkpoint) stored(m Matrix) (Linear, error) {
	if err := m.check(); err != nil {
		return Linear{}, err
	}
	w, err := c.Tensor(m.Name, Want{Shape: []int{m.Out, m.In}, DTypes: linearTypes})
	if err != nil {
		return Linear{}, err
	}
	l := Linear{Weight: w, Heads: m.Heads}
	var suffix string
	var grid []int
	switch w.DType {
	case F8E4M3:
		l.BlockRows, l.BlockCols = ScaleBlock, ScaleBlock
		suffix, grid = "_scale_inv", []int{ceilDiv(m.Out, ScaleBlock), ceilDiv(m.In, ScaleBlock)}
	case I8:
		l.BlockRows, l.BlockCols = 1, max(m.In, 1)
		suffix, grid = scaleSuffix, []int{m.Out, 1}
	default:
		return l, nil
	}
	s, err := c.Tensor(m.Name+suffix, Want{Shape: grid, DTypes: []DType{F32}})
	if err != nil {
		return Linear{}, &scaleError{err, l}
	}
	l.Scale = &s
	return l, nil
}

// countLinear counts a part of a matrix, and of its scales.
func (r *Reader) countLinear(m Matrix, l Linear, p part) {
	r.count(request{l.Weight.Name, m.Form, m.Heads, p}, l.Heads.count(p.bytes(l.Weight)))
	if l.Scale != nil {
		blocks := part{p.axis, p.from / l.BlockRows, ceilDiv(p.to, l.BlockRows)}
		if p.axis == columns {
			blocks = part{p.axis, p.from / l.BlockCols, ceilDiv(p.to, l.BlockCols)}
		}
		r.count(request{name: l.Scale.Name, form: m.Form, part: blocks}, blocks.bytes(*l.Scale))
	}
}

// scaleError is a fault of the scales of a matrix. It renders the fault when it is read, as missingError does.
type scaleError struct {
	fault  error
	matrix Linear // without scales
}

func (e *scaleError) Error() string {
	m := e.matrix
	return fmt.Sprintf("%v (it has the scales of %q, %s %v in blocks of %dx%d)", e.fault, m.Weight.Name, m.Weight.DType, m.Weight.Shape, m.BlockRows, m.BlockCols)
}

// Unwrap gives the fault of the scales themselves.
func (e *scaleError) Unwrap() error { return e.fault }

func ceilDiv(a, b int) int { return (a + b - 1) / b }
