package kernels

// Format is how a weight's elements are stored.
type Format uint8

// The formats. The zero value is none.
const (
	F32    Format = iota + 1 // IEEE 754 binary32
	BF16                     // upper half of a binary32
	F16                      // IEEE 754 binary16
	F8E4M3                   // OCP 8-bit float, NaN is 0x7f and 0xff, no infinities
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

// Ints is a view of int32 rows, as Mat. // (Rows, Cols)
type Ints struct {
	Data   []int32
	Rows   int
	Cols   int
	Stride int
}

// Row returns row i. // (Cols)
func (m Ints) Row(i int) []int32 { return m.Data[i*m.Stride:][:m.Cols:m.Cols] }

// Weight is a linear map as checkpoints store it, [out, in] without gaps between rows. Exactly one of the data slices is set,
// the one of Format.
type Weight struct {
	Format Format
	Out    int
	In     int

	F32 []float32 // (Out, In) for F32
	U16 []uint16  // (Out, In) for BF16 and F16
	U8  []uint8   // (Out, In) for F8E4M3

	// F8E4M3 elements count value·Scale[(o/BlockRows)·ScaleCols + i/BlockCols]; a weight without scales has Scale nil.
	Scale     []float32 // (ceil(Out/BlockRows), ScaleCols)
	ScaleCols int       // ceil(In/BlockCols)
	BlockRows int
	BlockCols int
}
