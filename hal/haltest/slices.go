package haltest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
)

// fp8 imports powers of two with either sign, scaled by block, and returns their real values. // (out, in)
func (r *rig) fp8(out, in, block int) (hal.Weight, []float32) {
	r.Helper()
	rows, cols := (out+block-1)/block, (in+block-1)/block
	data, v := make([]byte, out*in), make([]float32, out*in)
	scale := r.random(rows * cols)
	for i := range data { // exponent codes give powers of two: 2^(e−7), and the sign
		e := r.rand.IntN(15) + 1
		data[i] = byte(e<<3 | r.rand.IntN(2)<<7)
		v[i] = float32(math.Ldexp(1, e-7))
		if data[i]&0x80 != 0 {
			v[i] = -v[i]
		}
		v[i] *= scale[i/in/block*cols+i%in/block]
	}
	d, err := r.dev.Import(hal.F8E4M3, out, in, data)
	if err != nil {
		r.Fatal(err)
	}
	raw := make([]byte, 4*len(scale))
	for i, s := range scale {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(s))
	}
	s, err := r.dev.Import(hal.F32, rows, cols, raw)
	if err != nil {
		r.Fatal(err)
	}
	return hal.Weight{Data: d, Scale: s, BlockRows: block, BlockCols: block}, v
}

// testFP8Blocks gives each block of a ragged matrix a scale of its own.
func testFP8Blocks(r *rig) {
	const out, in, block = 5, 7, 3
	w, v := r.fp8(out, in, block)
	xv := r.random(2 * in)
	y := r.alloc(hal.F32, 2, out)
	r.st.MatMul(y, r.f32(2, xv...), w)
	r.near("FP8", r.floats(y), mul(xv, v, in), 1e-4)

	for name, change := range map[string]func(*hal.Weight){
		"scales of another grid": func(w *hal.Weight) { w.BlockRows, w.BlockCols = 4, 2 },
		"no block size":          func(w *hal.Weight) { w.BlockRows = 0 },
		"rows below the scales":  func(w *hal.Weight) { w.RowStart = 2 },
		"columns beside them":    func(w *hal.Weight) { w.ColStart = 3 },
		"a negative row":         func(w *hal.Weight) { w.RowStart = -1 },
		"a column beyond all":    func(w *hal.Weight) { w.ColStart = math.MaxInt - 1 },
	} {
		bad := w
		change(&bad)
		r.expectFault(name, func() { r.st.MatMul(y, r.f32(2, xv...), bad) })
	}
}

// testSlices cuts matrices by rows, by columns and by both, at places that are no multiples of a block, and compares each slice with
// the elements of the whole, in the ops that take weights.
func testSlices(r *rig) {
	const out, in = 300, 270
	plain, pv := r.weight(out, in)
	scaled, sv := r.fp8(out, in, 128)
	for _, m := range []struct {
		name string
		w    hal.Weight
		v    []float32
	}{{"BF16", plain, pv}, {"F8_E4M3", scaled, sv}} {
		for _, c := range [][4]int{{0, out, 0, in}, {1, 38, 0, in}, {127, 129, 0, in}, {129, out, 0, in}, {0, out, 37, 131}, {0, out, 128, 256}, {0, out, 129, in}, {37, 260, 127, 258}} {
			name := fmt.Sprintf("%s %v", m.name, c)
			part, rows, cols := m.w.Slice(c[0], c[1]).Columns(c[2], c[3]), c[1]-c[0], c[3]-c[2]
			v := make([]float32, 0, rows*cols)
			for o := c[0]; o < c[1]; o++ {
				v = append(v, m.v[o*in+c[2]:o*in+c[3]]...)
			}
			table := r.alloc(hal.F32, rows, cols)
			ids := make([]int32, rows)
			for i := range ids {
				ids[i] = int32(c[0] + i)
			}
			r.st.Embed(table, part, r.i32(1, ids...), c[0])
			if !slices.Equal(r.floats(table), v) {
				r.Errorf("%s: Embed does not give the elements of the whole", name)
			}
			xv := r.random(2 * cols)
			x, y, want := r.f32(2, xv...), r.alloc(hal.F32, 2, rows), mul(xv, v, cols)
			r.st.MatMul(y, x, part)
			r.scaledNear(name+" MatMul", r.floats(y), want)
			r.st.GroupedMatMul(y, x, r.i32(1, 0, 2), []hal.Weight{{}, part})
			r.scaledNear(name+" GroupedMatMul", r.floats(y), want)
			r.st.HeadMatMul(y, x, part, hal.HeadMatMul{Heads: 1, Rows: rows, To: rows, InStride: cols, OutStride: rows})
			r.scaledNear(name+" HeadMatMul", r.floats(y), want)
		}
	}
}

// scaledNear compares with a tolerance relative to the largest wanted value: terms cancel in single ones.
func (r *rig) scaledNear(name string, got []float32, want []float64) {
	r.Helper()
	top := 1.0
	for _, v := range want {
		top = max(top, math.Abs(v))
	}
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= tol*top) {
			r.Fatalf("%s: element %d is %g, want %g (the largest is %g)", name, i, got[i], want[i], top)
		}
	}
}
