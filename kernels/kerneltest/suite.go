package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// tolerance of a float32 sum of n products in any order, relative to the sum of the absolute terms: n·2⁻²⁴ at worst, a
// few 2⁻²³ in practice.
const tolerance = 4e-6

// Run tests an implementation against the formulas.
func Run(t *testing.T, k kernels.Table) {
	t.Run("Embed", func(t *testing.T) { testEmbed(t, k) })
	t.Run("MatMul", func(t *testing.T) { testMatMul(t, k) })
	t.Run("Slices", func(t *testing.T) { testSlices(t, k) })
	t.Run("Batches", func(t *testing.T) { testBatches(t, k) })
	t.Run("HeadMatMul", func(t *testing.T) { testHeadMatMul(t, k) })
	t.Run("SwiGLU", func(t *testing.T) { testSwiGLU(t, k) })
	t.Run("Quantize", func(t *testing.T) { testQuantize(t, k) })
	t.Run("MatMul8", func(t *testing.T) { testMatMul8(t, k) })
	t.Run("SwiGLU8", func(t *testing.T) { testSwiGLU8(t, k) })
	t.Run("RMSNorm", func(t *testing.T) { testRMSNorm(t, k) })
	t.Run("AddRMSNorm", func(t *testing.T) { testAddRMSNorm(t, k) })
	t.Run("Rope", func(t *testing.T) { testRope(t, k) })
	t.Run("MLAAttention", func(t *testing.T) { testAttention(t, k) })
	t.Run("AttendKeys", func(t *testing.T) { testAttendKeys(t, k) })
	t.Run("Route", func(t *testing.T) { testRoute(t, k) })
	t.Run("Combine", func(t *testing.T) { testCombine(t, k) })
	t.Run("Add", func(t *testing.T) { testAdd(t, k) })
	t.Run("Finite", func(t *testing.T) { testFinite(t, k) })
	t.Run("Blocks", func(t *testing.T) { testBlocks(t, k) })
}

func testEmbed(t *testing.T, k kernels.Table) {
	g := newGen(t, 1)
	for name, f := range formats {
		for _, h := range Sizes {
			w := g.weight(f, 37, h)
			const first = 100 // of the table's rows, in the vocabulary
			ids := []int32{136, 100, 99, 117, 117, 137, 0, math.MaxInt32}
			out := guarded(len(ids), h)
			k.Embed(out, w, ids, first)
			checkGuards(t, name, out)
			for r, id := range ids {
				for i, v := range out.Row(r) {
					var want float64
					if id >= first && id < first+37 {
						want = element(w, int(id)-first, i)
					}
					near(t, fmt.Sprintf("%s id %d, element %d", name, id, i), v, want, 1, 0)
				}
			}
		}
	}
}

func testMatMul(t *testing.T, k kernels.Table) {
	g := newGen(t, 2)
	for name, f := range formats {
		for n, in := range Sizes {
			rows, outs := 1+n%5, Sizes[len(Sizes)-1-n]
			x, w, out := g.mat(rows, in), g.weight(f, outs, in), guarded(rows, outs)
			k.MatMul(out, x, w)
			checkGuards(t, name, out)
			for r := range rows {
				for o := range outs {
					sum, terms := dot64(w, o, 0, x.Row(r))
					near(t, fmt.Sprintf("%s %d×%d (%d, %d)", name, outs, in, r, o), out.Row(r)[o], sum, terms, tolerance)
				}
				alone := guarded(1, outs)
				k.MatMul(alone, x.Sub(r, r+1), w)
				same(t, name, out.Row(r), alone.Row(0))
			}
		}
	}
}

// dot64 is row o of w, from a column on, times x; terms is the sum of the absolute products.
func dot64(w *kernels.Weight, o, from int, x []float32) (sum, terms float64) {
	for i, v := range x {
		p := element(w, o, from+i) * float64(v)
		sum += p
		terms += math.Abs(p)
	}
	return sum, terms
}

func testHeadMatMul(t *testing.T, k kernels.Table) {
	g := newGen(t, 3)
	for name, f := range formats {
		for _, in := range []int{1, 3, 8, 33, 65} {
			const heads, rows, perHead, from, to = 3, 4, 9, 2, 7
			w := g.weight(f, heads*perHead, in)
			plain := kernels.HeadMatMul{Heads: heads, Rows: perHead, From: from, To: to, InStride: in + 2, OutStride: to - from + 1}
			x, out := g.mat(rows, heads*plain.InStride), guarded(rows, heads*plain.OutStride)
			k.HeadMatMul(out, x, w, plain)
			checkGuards(t, name, out)
			for r := range rows {
				for h := range heads {
					for j := range to - from {
						sum, terms := dot64(w, h*perHead+from+j, 0, x.Row(r)[h*plain.InStride:][:in])
						near(t, name+" plain", out.Row(r)[h*plain.OutStride+j], sum, terms, tolerance)
					}
					if v := out.Row(r)[h*plain.OutStride+to-from]; v != guardValue {
						t.Fatalf("%s plain: the gap behind head %d was overwritten with %g", name, h, v)
					}
				}
			}
			testTransposed(t, k, g, name, w, plain, rows)
		}
	}
}

func testTransposed(t *testing.T, k kernels.Table, g gen, name string, w *kernels.Weight, h kernels.HeadMatMul, rows int) {
	t.Helper()
	width := h.To - h.From
	h.Transposed, h.InStride, h.OutStride = true, width+3, w.In+1
	x, out := g.mat(rows, h.Heads*h.InStride), guarded(rows, h.Heads*h.OutStride)
	k.HeadMatMul(out, x, w, h)
	checkGuards(t, name, out)
	for r := range rows {
		for head := range h.Heads {
			for i := range w.In {
				var sum, terms float64
				for j := range width {
					p := float64(x.Row(r)[head*h.InStride+j]) * element(w, head*h.Rows+h.From+j, i)
					sum += p
					terms += math.Abs(p)
				}
				near(t, name+" transposed", out.Row(r)[head*h.OutStride+i], sum, terms, tolerance)
			}
			if v := out.Row(r)[head*h.OutStride+w.In]; v != guardValue {
				t.Fatalf("%s transposed: the gap behind head %d was overwritten with %g", name, head, v)
			}
		}
	}
}

func testSwiGLU(t *testing.T, k kernels.Table) {
	g := newGen(t, 4)
	for name, f := range formats {
		for _, in := range Sizes {
			const rows, outs = 3, 13
			x, gate, up, out := g.mat(rows, in), g.weight(f, outs, in), g.weight(f, outs, in), guarded(rows, outs)
			k.SwiGLU(out, x, gate, up)
			checkGuards(t, name, out)
			for r := range rows {
				for o := range outs {
					a, ta := dot64(gate, o, 0, x.Row(r))
					b, tb := dot64(up, o, 0, x.Row(r))
					want := a / (1 + math.Exp(-a)) * b
					near(t, name, out.Row(r)[o], want, (1+ta)*(1+tb), tolerance)
				}
				alone := guarded(1, outs)
				k.SwiGLU(alone, x.Sub(r, r+1), gate, up)
				same(t, name, out.Row(r), alone.Row(0))
			}
		}
	}
}

func testRMSNorm(t *testing.T, k kernels.Table) {
	g := newGen(t, 5)
	for _, c := range Sizes {
		const rows, eps = 3, 1e-6
		x, w, out := g.mat(rows, c), g.mat(1, c).Row(0), guarded(rows, c)
		clear(x.Row(1)) // eps alone keeps a zero row finite
		k.RMSNorm(out, x, w, eps)
		checkGuards(t, "RMSNorm", out)
		for r := range rows {
			var sum float64
			for _, v := range x.Row(r) {
				sum += float64(v) * float64(v)
			}
			for i, v := range x.Row(r) {
				want := float64(v) / math.Sqrt(sum/float64(c)+eps) * float64(w[i])
				near(t, fmt.Sprintf("C %d (%d, %d)", c, r, i), out.Row(r)[i], want, math.Abs(want), tolerance)
			}
		}
		k.RMSNorm(x, x, w, eps)
		for r := range rows {
			same(t, "in place", x.Row(r), out.Row(r))
		}
	}
}

func testAddRMSNorm(t *testing.T, k kernels.Table) {
	g := newGen(t, 7)
	for _, c := range Sizes {
		const rows, eps = 3, 1e-6
		x, y, w := g.mat(rows, c), g.mat(rows, c), g.mat(1, c).Row(0)
		sum, norm := guarded(rows, c), guarded(rows, c)
		k.Add(sum, x, y)
		k.RMSNorm(norm, sum, w, eps)
		in, out := guarded(rows, c), guarded(rows, c)
		for r := range rows {
			copy(in.Row(r), x.Row(r))
		}
		k.AddRMSNorm(out, in, y, w, eps)
		checkGuards(t, "AddRMSNorm", out)
		checkGuards(t, "AddRMSNorm, x", in)
		k.AddRMSNorm(y, x, y, w, eps)
		for r := range rows {
			what := fmt.Sprintf("C %d row %d", c, r)
			same(t, what+", sum", in.Row(r), sum.Row(r))
			same(t, what, out.Row(r), norm.Row(r))
			same(t, what+", out is y", y.Row(r), norm.Row(r))
		}
	}
}

func testRope(t *testing.T, k kernels.Table) {
	g := newGen(t, 6)
	const rows, heads, positions = 4, 3, 9
	for _, dim := range []int{2, 8, 16, 64} {
		table := g.mat(positions, dim)
		pos := []int32{8, 0, 3, 3}
		r := kernels.Rope{Heads: heads, Dim: dim, InStride: dim + 5, InOffset: 4, OutStride: dim + 2, OutOffset: 1}
		x, out := g.mat(rows, heads*r.InStride), guarded(rows, heads*r.OutStride)
		k.Rope(out, x, pos, table, r)
		checkGuards(t, "Rope", out)
		for t2, p := range pos {
			for h := range heads {
				in, got := x.Row(t2)[h*r.InStride+r.InOffset:], out.Row(t2)[h*r.OutStride:]
				for i := 0; i < dim; i += 2 {
					a, b, cos, sin := float64(in[i]), float64(in[i+1]), float64(table.Row(int(p))[i]), float64(table.Row(int(p))[i+1])
					near(t, "even", got[1+i], a*cos-b*sin, math.Abs(a*cos)+math.Abs(b*sin), tolerance)
					near(t, "odd", got[2+i], b*cos+a*sin, math.Abs(b*cos)+math.Abs(a*sin), tolerance)
				}
				if got[0] != guardValue || got[dim+1] != guardValue {
					t.Fatalf("elements of head %d outside the rotated ones were overwritten", h)
				}
			}
		}
		r.OutStride, r.OutOffset = r.InStride, r.InOffset
		inPlace := kernels.Mat{Data: append([]float32(nil), x.Data...), Rows: rows, Cols: x.Cols, Stride: x.Stride}
		k.Rope(x, x, pos, table, r)
		k.Rope(inPlace, inPlace, pos, table, r)
		for i := range rows {
			same(t, "in place", x.Row(i), inPlace.Row(i))
		}
	}
}

func testAdd(t *testing.T, k kernels.Table) {
	g := newGen(t, 8)
	for _, c := range Sizes {
		a, b, out := g.mat(3, c), g.mat(3, c), guarded(3, c)
		k.Add(out, a, b)
		checkGuards(t, "Add", out)
		for r := range 3 {
			for i := range c {
				if want := a.Row(r)[i] + b.Row(r)[i]; out.Row(r)[i] != want {
					t.Fatalf("C %d (%d, %d): got %g, want %g", c, r, i, out.Row(r)[i], want)
				}
			}
		}
		k.Add(a, a, b)
		for r := range 3 {
			same(t, "in place", a.Row(r), out.Row(r))
		}
	}
}

func testFinite(t *testing.T, k kernels.Table) {
	g := newGen(t, 9)
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	for _, c := range Sizes {
		x := g.mat(1, c).Row(0)
		x[0] = math.MaxFloat32
		if !k.Finite(x) {
			t.Fatalf("C %d: finite numbers are called non-finite", c)
		}
		for i := range x {
			for _, b := range bad {
				old := x[i]
				x[i] = b
				if k.Finite(x) {
					t.Fatalf("C %d: %g at %d was not seen", c, b, i)
				}
				x[i] = old
			}
		}
	}
}
