package haltest

import (
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
)

// testEmbed looks up a whole vocabulary, and the rows 3 … 7 of a larger one: ids of other slices give zeros.
func testEmbed(r *rig) {
	w, v := r.weight(5, 4)
	out := r.alloc(hal.F32, 3, 4)
	r.st.Embed(out, w, r.i32(1, 4, 0, 4), 0)
	if got, want := r.floats(out), slices.Concat(v[16:], v[:4], v[16:]); !slices.Equal(got, want) {
		r.Errorf("got %v, want %v", got, want)
	}
	out = r.f32(5, r.random(20)...)
	none := make([]float32, 4)
	r.st.Embed(out, w, r.i32(1, 2, 3, 7, 8, math.MaxInt32), 3)
	if got, want := r.floats(out), slices.Concat(none, v[:4], v[16:], none, none); !slices.Equal(got, want) {
		r.Errorf("a slice of the vocabulary gives %v, want %v", got, want)
	}
}

func testRMSNorm(r *rig) {
	x, w := r.random(2*6), r.random(6)
	const eps = 1e-3
	var want []float64
	for t := range 2 {
		s := 0.0
		for _, v := range x[t*6 : t*6+6] {
			s += float64(v) * float64(v)
		}
		for i, v := range x[t*6 : t*6+6] {
			want = append(want, float64(v)/math.Sqrt(s/6+eps)*float64(w[i]))
		}
	}
	in := r.f32(2, x...)
	out := r.alloc(hal.F32, 2, 6)
	r.st.RMSNorm(out, in, r.f32(1, w...), eps)
	r.near("out", r.floats(out), want, tol)
	r.st.RMSNorm(in, in, r.f32(1, w...), eps)
	r.near("in place", r.floats(in), want, tol)
}

func testAddRMSNorm(r *rig) {
	const rows, cols, eps = 3, 37, 1e-3
	x, y, w := r.random(rows*cols), r.random(rows*cols), r.f32(1, r.random(cols)...)
	sum, norm := r.f32(rows, x...), r.alloc(hal.F32, rows, cols)
	other := r.f32(rows, y...)
	r.st.Add(sum, sum, other)
	r.st.RMSNorm(norm, sum, w, eps)
	in, out := r.f32(rows, x...), r.alloc(hal.F32, rows, cols)
	r.st.AddRMSNorm(out, in, other, w, eps)
	if got, want := r.floats(in), r.floats(sum); !slices.Equal(got, want) {
		r.Errorf("x is %v, Add gives %v", got, want)
	}
	want := r.floats(norm)
	if got := r.floats(out); !slices.Equal(got, want) {
		r.Errorf("out is %v, Add and RMSNorm give %v", got, want)
	}
	r.st.AddRMSNorm(other, r.f32(rows, x...), other, w, eps)
	if got := r.floats(other); !slices.Equal(got, want) {
		r.Errorf("onto y: %v, Add and RMSNorm give %v", got, want)
	}
}

func testMatMul(r *rig) {
	const rows, in, out = 3, 37, 5
	w, wv := r.weight(out, in)
	xv := r.random(rows * in)
	x, y := r.f32(rows, xv...), r.alloc(hal.F32, rows, out)
	r.st.MatMul(y, x, w)
	r.near("MatMul", r.floats(y), mul(xv, wv, in), tol)

	alone := r.alloc(hal.F32, 1, out)
	r.st.MatMul(alone, x.Slice(2, 3), w)
	if got, want := r.floats(alone), r.floats(y.Slice(2, 3)); !slices.Equal(got, want) {
		r.Errorf("a row alone gives %v, among others %v", got, want)
	}

	up, uv := r.weight(out, in)
	want := mul(xv, wv, in)
	for i, u := range mul(xv, uv, in) {
		want[i] = want[i] / (1 + math.Exp(-want[i])) * u
	}
	r.st.SwiGLU(y, x, w, up)
	r.near("SwiGLU", r.floats(y), want, 1e-4)
}

func testHeadMatMul(r *rig) {
	const heads, perHead, in, rows = 2, 5, 4, 3
	w, wv := r.weight(heads*perHead, in)
	h := hal.HeadMatMul{Heads: heads, Rows: perHead, From: 1, To: 4, InStride: in, OutStride: 3}
	xv := r.random(rows * heads * in)
	y := r.alloc(hal.F32, rows, heads*3)
	r.st.HeadMatMul(y, r.f32(rows, xv...), w, h)
	var want []float64
	for t := range rows {
		for n := range heads {
			x := xv[(t*heads+n)*in:][:in]
			want = append(want, mul(x, wv[(n*perHead+1)*in:(n*perHead+4)*in], in)...)
		}
	}
	r.near("plain", r.floats(y), want, tol)

	h.Transposed, h.InStride, h.OutStride = true, 3, in+1
	xv = r.random(rows * heads * 3)
	z := r.alloc(hal.F32, rows, heads*(in+1))
	r.st.HeadMatMul(z, r.f32(rows, xv...), w, h)
	want = make([]float64, rows*heads*(in+1))
	for t := range rows {
		for n := range heads {
			for j := range 3 {
				for i := range in {
					want[(t*heads+n)*(in+1)+i] += float64(xv[(t*heads+n)*3+j]) * float64(wv[(n*perHead+1+j)*in+i])
				}
			}
		}
	}
	r.near("transposed", r.floats(z), want, tol)
}

func testRope(r *rig) {
	table := r.f32(2, 1, 0, 1, 0, 0, 1, -1, 0) // row 0: no turn; row 1: a quarter, a half
	x := r.f32(2, 9, 1, 2, 3, 4, 9, 5, 6, 7, 8)
	out := r.alloc(hal.F32, 2, 6)
	r.st.Rope(out, x, r.i32(1, 1, 0), table, hal.Rope{Heads: 1, Dim: 4, InStride: 5, InOffset: 1, OutStride: 6, OutOffset: 2})
	if got, want := r.floats(out), []float32{0, 0, -2, 1, -3, -4, 0, 0, 5, 6, 7, 8}; !slices.Equal(got, want) {
		r.Errorf("got %v, want %v", got, want)
	}
}

func testRows(r *rig) {
	x := r.f32(3, 1, 2, 3, 4, 5, 6)
	out := r.alloc(hal.F32, 2, 2)
	r.st.GatherRows(out, x, r.i32(1, 2, 0))
	if got, want := r.floats(out), []float32{5, 6, 1, 2}; !slices.Equal(got, want) {
		r.Errorf("gathered %v, want %v", got, want)
	}
	r.st.Add(out, out, x.Slice(0, 2))
	if got, want := r.floats(out), []float32{6, 8, 4, 6}; !slices.Equal(got, want) {
		r.Errorf("added %v, want %v", got, want)
	}
	inf, nan := float32(math.Inf(-1)), float32(math.NaN())
	first := r.i32(1, -1, -1, -1, 2)
	r.st.MarkNonFinite(first, r.f32(4, 1, inf, 0, 0, nan, 1, 1, nan), 5)
	if got, want := r.ints(first), []int32{5, -1, 5, 2}; !slices.Equal(got, want) {
		r.Errorf("marks %v, want %v", got, want)
	}
}
