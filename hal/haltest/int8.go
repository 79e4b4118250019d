package haltest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
)

// int8s imports an I8 weight of random elements and scales and returns its real values. // (out, in)
func (r *rig) int8s(out, in int) (hal.Weight, []float32) {
	r.Helper()
	data, v, raw := make([]byte, out*in), make([]float32, out*in), make([]byte, 4*out)
	for o := range out {
		scale := float32(math.Exp(r.rand.NormFloat64()) / 100)
		binary.LittleEndian.PutUint32(raw[4*o:], math.Float32bits(scale))
		for i := o * in; i < (o+1)*in; i++ {
			q := r.rand.IntN(255) - 127
			data[i], v[i] = byte(int8(q)), float32(q)*scale
		}
	}
	d, err := r.dev.Import(hal.I8, out, in, data)
	if err != nil {
		r.Fatal(err)
	}
	s, err := r.dev.Import(hal.F32, out, 1, raw)
	if err != nil {
		r.Fatal(err)
	}
	return hal.Weight{Data: d, Scale: s, BlockRows: 1, BlockCols: in}, v
}

// wholes returns rows of whole numbers up to 127, of which each has one: quantized with scale 1 they stay what they are. // (rows, cols)
func (r *rig) wholes(rows, cols int) []float32 {
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = float32(r.rand.IntN(255) - 127)
	}
	for t := range rows {
		v[t*cols+r.rand.IntN(cols)] = -127
	}
	return v
}

// silus is silu(a) · b, element by element.
func silus(a, b []float64) []float64 {
	y := slices.Clone(a)
	for i := range y {
		y[i] = a[i] / (1 + math.Exp(-a[i])) * b[i]
	}
	return y
}

// testInt8 runs the ops that take I8 weights, on rows that int8 holds exactly: only the float32 result is rounded.
func testInt8(r *rig) {
	const heads, perHead, in, rows = 2, 5, 37, 3
	w, wv := r.int8s(heads*perHead, in)
	up, uv := r.int8s(heads*perHead, in)
	const out = heads * perHead
	xv := r.wholes(rows, in)
	x, y := r.f32(rows, xv...), r.alloc(hal.F32, rows, out)
	want, wantUp := mul(xv, wv, in), mul(xv, uv, in)
	r.st.MatMul(y, x, w)
	r.scaledNear("MatMul", r.floats(y), want)
	alone := r.alloc(hal.F32, 1, out)
	r.st.MatMul(alone, x.Slice(2, 3), w)
	if got, among := r.floats(alone), r.floats(y.Slice(2, 3)); !slices.Equal(got, among) {
		r.Errorf("a row alone gives %v, among others %v", got, among)
	}
	r.st.SwiGLU(y, x, w, up)
	r.scaledNear("SwiGLU", r.floats(y), silus(want, wantUp))

	// Expert 0 has rows 0 and 1, expert 2 has row 2.
	counts, other := r.i32(1, 2, 0, 1), hal.Weight{}
	r.st.GroupedMatMul(y, x, counts, []hal.Weight{w, other, up})
	r.scaledNear("GroupedMatMul", r.floats(y), slices.Concat(want[:2*out], wantUp[2*out:]))
	r.st.GroupedSwiGLU(y, x, counts, []hal.Weight{w, other, up}, []hal.Weight{up, other, w})
	r.scaledNear("GroupedSwiGLU", r.floats(y), slices.Concat(silus(want[:2*out], wantUp[:2*out]), silus(wantUp[2*out:], want[2*out:])))

	h := hal.HeadMatMul{Heads: heads, Rows: perHead, From: 1, To: 4, InStride: in + 2, OutStride: 3}
	xv = r.wholes(rows*heads, in)
	padded := make([]float32, 0, rows*heads*(in+2))
	want = nil
	for t := range rows {
		for n := range heads {
			part := xv[(t*heads+n)*in:][:in]
			padded = append(append(padded, part...), 1000, -1000) // not the head's
			want = append(want, mul(part, wv[(n*perHead+1)*in:(n*perHead+4)*in], in)...)
		}
	}
	z := r.alloc(hal.F32, rows, heads*3)
	r.st.HeadMatMul(z, r.f32(rows, padded...), w, h)
	r.scaledNear("HeadMatMul", r.floats(z), want)
}

// testInt8Rounds: of rows in general each element is off by at most half a step; a row that is not finite shows in its outputs alone.
func testInt8Rounds(r *rig) {
	const rows, in, out = 4, 61, 5
	w, wv := r.int8s(out, in)
	xv := r.random(rows * in)
	clear(xv[in : 2*in]) // a row of zeros
	y := r.alloc(hal.F32, rows, out)
	r.st.MatMul(y, r.f32(rows, xv...), w)
	got, want := r.floats(y), mul(xv, wv, in)
	for t := range rows {
		top := 0.0
		for _, v := range xv[t*in : (t+1)*in] {
			top = max(top, math.Abs(float64(v)))
		}
		for o := range out {
			sum := 0.0
			for _, v := range wv[o*in : (o+1)*in] {
				sum += math.Abs(float64(v))
			}
			if off := math.Abs(float64(got[t*out+o]) - want[t*out+o]); off > (0.5001*top/127+tol)*sum {
				r.Errorf("row %d, output %d: %g is off by %g, half a step gives %g", t, o, got[t*out+o], off, top/254*sum)
			}
		}
	}
	xv[3] = float32(math.Inf(1))
	r.st.MatMul(y, r.f32(rows, xv...), w)
	for i, v := range r.floats(y) {
		if bad := math.IsNaN(float64(v)) || math.IsInf(float64(v), 0); bad != (i < out) || !bad && v != got[i] {
			r.Errorf("element %d is %g beside an infinity in row 0, %g without", i, v, got[i])
		}
	}
}

// testInt8Slices cuts I8 matrices by rows and columns: a slice keeps the scales of its rows.
func testInt8Slices(r *rig) {
	const out, in = 30, 41
	w, wv := r.int8s(out, in)
	for _, c := range [][4]int{{0, out, 0, in}, {1, 8, 0, in}, {29, out, 0, in}, {0, out, 3, 20}, {5, 25, 17, in}} {
		rows, cols := c[1]-c[0], c[3]-c[2]
		var v []float32
		for o := c[0]; o < c[1]; o++ {
			v = append(v, wv[o*in+c[2]:o*in+c[3]]...)
		}
		xv := r.wholes(2, cols)
		y := r.alloc(hal.F32, 2, rows)
		r.st.MatMul(y, r.f32(2, xv...), w.Slice(c[0], c[1]).Columns(c[2], c[3]))
		r.scaledNear(fmt.Sprint(c), r.floats(y), mul(xv, v, cols))
	}
}

// testInt8Faults: what an I8 weight cannot do is refused.
func testInt8Faults(r *rig) {
	const out, in = 4, 6
	w, _ := r.int8s(out, in)
	plain, _ := r.weight(out, in)
	x, y := r.f32(2, r.random(2*in)...), r.alloc(hal.F32, 2, out)
	for name, change := range map[string]func(*hal.Weight){
		"no scales":             func(w *hal.Weight) { w.Scale = hal.Tensor{} },
		"blocks of two rows":    func(w *hal.Weight) { w.BlockRows = 2 },
		"rows below the scales": func(w *hal.Weight) { w.RowStart = 1 },
		"scales side by side":   func(w *hal.Weight) { w.Scale.Rows, w.Scale.Cols, w.Scale.Stride = 1, out, out },
		"scales apart":          func(w *hal.Weight) { w.Scale.Rows, w.Scale.Stride, w.Data.Rows = 2, 2, 2 },
	} {
		bad := w
		change(&bad)
		r.expectFault(name, func() { r.st.MatMul(y.Columns(0, bad.Data.Rows), x, bad) })
	}
	r.expectFault("Embed", func() { r.st.Embed(x, w, r.i32(1, 0, 1), 0) })
	r.expectFault("gate alone", func() { r.st.SwiGLU(y, x, w, plain) })
	r.expectFault("up alone", func() { r.st.SwiGLU(y, x, plain, w) })
	r.expectFault("an expert's gate alone", func() { r.st.GroupedSwiGLU(y, x, r.i32(1, 2), []hal.Weight{w}, []hal.Weight{plain}) })
	h := hal.HeadMatMul{Heads: 1, Rows: out, To: out, Transposed: true, InStride: out, OutStride: in}
	r.expectFault("transposed", func() { r.st.HeadMatMul(r.alloc(hal.F32, 2, in), r.f32(2, r.random(2*out)...), w, h) })
}
