package kernels

// Format is how a weight's elements are stored.
type Format uint8

// The formats. The zero value is none.
const (
	F32    Format = iota + 1 // IEEE 754 binary32
	BF16                     // upper half of a binary32
	F16                      // IEEE 754 binary16
	F8E4M3                   // OCP 8-bit float, NaN is 0x7f and 0xff, no infinities
	I8                       // two's complement, −127 … 127; one scale per output
)

// Mat is a view of float32 rows: row i is Data[i·Stride : i·Stride+Cols]. // (Rows, Cols)
type Mat struct {
	Data   []float32
	Rows   int
	Cols   int
	Stride int
}

// Row returns row i. // (Cols)
func (m Mat) Row(i int) []float32 { return m.Data[i*m.Stride:][:m.Cols:m.Cols] }

// Sub returns rows [from, to). // (to-from, Cols)
func (m Mat) Sub(from, to int) Mat {
	m.Data, m.Rows = m.Data[from*m.Stride:], to-from
	return m
}

// Columns returns columns [from, to) of every row. // (Rows, to-from)
func (m Mat) Columns(from, to int) Mat {
	m.Data, m.Cols = m.Data[from:], to-from
	return m
}

// Ints is a view of int32 rows, as Mat. // (Rows, Cols)
type Ints struct {
	Data   []int32
	Rows   int
	Cols   int
	Stride int
}

// Row returns row i. // (Cols)
func (m Ints) Row(i int) []int32 { return m.Data[i*m.Stride:][:m.Cols:m.Cols] }

// Rows8 is a view of quantised rows: element i of row t counts Data[t·Stride+i]·Scale[t]. // (Rows, Cols)
type Rows8 struct {
	Data   []int8    // −127 … 127
	Scale  []float32 // (Rows)
	Rows   int
	Cols   int
	Stride int
}

// Row returns the elements of row i. // (Cols)
func (m Rows8) Row(i int) []int8 { return m.Data[i*m.Stride:][:m.Cols:m.Cols] }

// Sub returns rows [from, to). // (to-from, Cols)
func (m Rows8) Sub(from, to int) Rows8 {
	m.Data, m.Scale, m.Rows = m.Data[from*m.Stride:], m.Scale[from:to], to-from
	return m
}

// Weight is a linear map as checkpoints store it, [out, in], row o at o·Stride. Exactly one of the data slices is set, the one of
// Format.
type Weight struct {
	Format Format
	Out    int
	In     int
	Stride int // elements from one row to the next, ≥ In

	F32 []float32 // (Out, In) for F32
	U16 []uint16  // (Out, In) for BF16 and F16
	U8  []uint8   // (Out, In) for F8E4M3
	I8  []int8    // (Out, In) for I8

	// F8E4M3 elements count value·Scale[((RowStart+o)/BlockRows)·ScaleCols + (ColStart+i)/BlockCols]: a slice of a matrix uses the
	// blocks of the whole one. A weight without scales has Scale nil. I8 elements count value·Scale[RowStart+o]; the other fields mean
	// nothing then.
	Scale     []float32 // (≥ ceil((RowStart+Out)/BlockRows), ScaleCols)
	ScaleCols int       // ≥ ceil((ColStart+In)/BlockCols)
	BlockRows int
	BlockCols int
	RowStart  int
	ColStart  int
}

// Sub returns rows [from, to): outputs from … to−1. // (to-from, In)
func (w Weight) Sub(from, to int) Weight {
	at := from * w.Stride
	switch w.Format {
	case F32:
		w.F32 = w.F32[at:]
	case BF16, F16:
		w.U16 = w.U16[at:]
	case F8E4M3:
		w.U8 = w.U8[at:]
	case I8:
		w.I8 = w.I8[at:]
	}
	w.Out = to - from
	w.RowStart += from
	return w
}
