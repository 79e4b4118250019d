package ref

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// cutFP8 is a slice of a random FP8 matrix, with the matrix itself as real numbers.
type cutFP8 struct {
	w              kernels.Weight
	values         [][]float64 // (rows, columns) of the whole
	row0, from, to int
}

// newCutFP8 makes rows [row0, rows) and columns [from, to) of a matrix with random codes and a scale per block; a block of size 0
// stands for no scales.
func newCutFP8(r *rand.Rand, rows, columns, row0, from, to, block int) cutFP8 {
	c := cutFP8{row0: row0, from: from, to: to}
	codes := make([]uint8, rows*columns)
	for i := range codes {
		codes[i] = uint8(r.IntN(2)<<7 | r.IntN(0x7f))
	}
	c.w = kernels.Weight{Format: kernels.F8E4M3, Out: rows - row0, In: to - from, Stride: columns, U8: codes[row0*columns+from : (rows-1)*columns+to], RowStart: row0, ColStart: from}
	if block > 0 {
		c.w.BlockRows, c.w.BlockCols, c.w.ScaleCols = block+1, block, (columns-1)/block+1
		for range ((rows-1)/(block+1) + 1) * c.w.ScaleCols {
			c.w.Scale = append(c.w.Scale, float32(math.Exp(r.NormFloat64())))
		}
	}
	for o := range rows {
		line := make([]float64, columns)
		for i := range line {
			line[i] = float64(f8e4m3[codes[o*columns+i]])
			if block > 0 {
				line[i] = float64(f8e4m3[codes[o*columns+i]] * c.w.Scale[o/(block+1)*c.w.ScaleCols+i/block])
			}
		}
		c.values = append(c.values, line)
	}
	return c
}

// check compares the elements of the slice, its dot products and its weighted rows with the real numbers.
func (c cutFP8) check(t *testing.T, r *rand.Rand) {
	t.Helper()
	x := make([]float32, c.w.In)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for o := range c.w.Out {
		want, y := c.values[c.row0+o][c.from:c.to], make([]float32, c.w.In)
		axpy(y, 1, &c.w, o)
		var sum, terms float64
		for i, v := range want {
			if got := at(&c.w, o, i); float64(got) != v || float64(y[i]) != v {
				t.Fatalf("element (%d, %d) is %g, added to zero %g, want %g", o, i, got, y[i], v)
			}
			sum += v * float64(x[i])
			terms += math.Abs(v * float64(x[i]))
		}
		if got, want := dot(&c.w, o, x), dotF32(y, x); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("row %d: %g, the same values in F32 give %g: a block's border changed the order of the sum", o, got, want)
		}
		// Higham, Accuracy and Stability of Numerical Algorithms, section 3.1: n·u of the absolute terms, u = 2⁻²⁴; one u more
		// for each product.
		if got, most := float64(dot(&c.w, o, x)), float64(len(x)+1)*0x1p-24*terms; math.Abs(got-sum) > most {
			t.Fatalf("row %d: %g, want %g within %g", o, got, sum, most)
		}
	}
}

func FuzzFP8Slice(f *testing.F) {
	for _, from := range []uint16{0, 1, 37, 127, 128, 129} {
		f.Add(uint64(from), uint16(131), uint16(300), uint16(5), from, uint16(140), uint8(128))
	}
	f.Add(uint64(7), uint16(9), uint16(40), uint16(1), uint16(3), uint16(30), uint8(7))
	f.Add(uint64(8), uint16(9), uint16(40), uint16(1), uint16(3), uint16(1), uint8(1))
	f.Add(uint64(9), uint16(2), uint16(19), uint16(1), uint16(2), uint16(15), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, rows, columns, row0, from, width uint16, block uint8) {
		r := rand.New(rand.NewPCG(seed, 2))
		n, m := 1+int(rows)%200, 1+int(columns)%400
		first := int(from) % m
		to := first + 1 + int(width)%(m-first)
		newCutFP8(r, n, m, int(row0)%n, first, to, int(block)).check(t, r)
	})
}

// TestFP8SlicesAtRandom runs shapes that nobody chose.
func TestFP8SlicesAtRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	for range 200 {
		rows, columns := 1+r.IntN(40), 1+r.IntN(300)
		from := r.IntN(columns)
		newCutFP8(r, rows, columns, r.IntN(rows), from, from+1+r.IntN(columns-from), r.IntN(140)).check(t, r)
	}
}
