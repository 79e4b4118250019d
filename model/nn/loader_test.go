package nn_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
)

// loading is a checkpoint of two matrices, "plain" and "fp8", (300, 260) each, and a device to bring them to.
type loading struct {
	*testing.T
	st     hal.Stream
	reader *weights.Reader
	alloc  nn.Allocator
	*nn.Loader
}

const out, in = 300, 260 // 3 × 3 blocks of scales

func newLoading(t *testing.T) *loading {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	values, codes := make([]float32, out*in), make([]byte, out*in)
	for i := range values {
		values[i] = float32(i%251) - 125
		codes[i] = byte(i*13%0x7f | i&1<<7)
	}
	dir := t.TempDir()
	must(weightstest.Write(filepath.Join(dir, "model.safetensors"),
		weightstest.Tensor{Name: "fp8_scale_inv", DType: "F32", Shape: []int{3, 3}, Data: weightstest.F32(1, 2, 3, 5, 7, 11, 13, 17, 19)},
		weightstest.Tensor{Name: "plain", DType: "BF16", Shape: []int{out, in}, Data: weightstest.BF16(values...)},
		weightstest.Tensor{Name: "fp8", DType: "F8_E4M3", Shape: []int{out, in}, Data: codes},
		weightstest.Tensor{Name: "norm", DType: "BF16", Shape: []int{4}, Data: weightstest.BF16(1, -2, 0.5, 3)},
	))
	ckpt, err := weights.Open(dir)
	must(err)
	t.Cleanup(func() { must(ckpt.Close()) })
	dev, err := cpu.Open(cpu.Options{})
	must(err)
	t.Cleanup(func() { must(dev.Close()) })
	st, err := dev.NewStream()
	must(err)
	l := &loading{T: t, st: st, reader: ckpt.NewReader()}
	l.alloc.Device = dev
	l.Loader = nn.NewLoader(&l.alloc, l.reader, st)
	return l
}

// elements reads a weight as real numbers. // (rows, columns) of w
func (l *loading) elements(w hal.Weight) []float32 {
	l.Helper()
	rows, cols := w.Data.Rows, w.Data.Cols
	ids, table := l.alloc.I32(1, rows), l.alloc.F32(rows, cols)
	numbers := make([]int32, rows)
	for i := range numbers {
		numbers[i] = int32(i)
	}
	l.st.PutInt32(ids, numbers)
	l.st.Embed(table, w, ids, 0)
	v := make([]float32, rows*cols)
	l.st.GetFloat32(v, table)
	if err := l.st.Synchronize(l.Context()); err != nil {
		l.Fatal(err)
	}
	if err := l.Err(); err != nil {
		l.Fatal(err)
	}
	return v
}

// TestPartsReassemble cuts matrices inside blocks of scales and on their borders: the parts are the elements of the whole.
func TestPartsReassemble(t *testing.T) {
	for _, name := range []string{"plain", "fp8"} {
		l := newLoading(t)
		whole := l.elements(l.Linear(weights.Matrix{Name: name, Out: out, In: in}))
		from := 0
		for _, to := range []int{1, 38, 127, 128, 129, 256, out} {
			if got := l.elements(l.Rows(weights.Matrix{Name: name, Out: out, In: in}, from, to)); !slices.Equal(got, whole[from*in:to*in]) {
				t.Errorf("%s: rows [%d, %d) are not those of the whole", name, from, to)
			}
			from = to
		}
		from = 0
		for _, to := range []int{1, 38, 127, 128, 129, 256, in} {
			var want []float32
			for o := range out {
				want = append(want, whole[o*in+from:o*in+to]...)
			}
			if got := l.elements(l.Columns(weights.Matrix{Name: name, Out: out, In: in}, from, to)); !slices.Equal(got, want) {
				t.Errorf("%s: columns [%d, %d) are not those of the whole", name, from, to)
			}
			from = to
		}
	}
}

// TestPartialSums: what TP ranks get from their columns adds up to the whole product.
func TestPartialSums(t *testing.T) {
	l := newLoading(t)
	xv, y := make([]float32, in), make([]float32, out)
	for i := range xv {
		xv[i] = float32(i%7) - 3
	}
	x, o := l.alloc.F32(1, in), l.alloc.F32(1, out)
	l.st.PutFloat32(x, xv)
	values := l.elements(l.Linear(weights.Matrix{Name: "fp8", Out: out, In: in}))
	sums := make([]float64, out)
	for rank := range 3 {
		from, to := []int{0, 87, 174}[rank], []int{87, 174, in}[rank]
		l.st.MatMul(o, x.Columns(from, to), l.Columns(weights.Matrix{Name: "fp8", Out: out, In: in}, from, to))
		l.st.GetFloat32(y, o)
		if err := l.st.Synchronize(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, v := range y {
			sums[i] += float64(v)
		}
	}
	for i, got := range sums {
		var want, terms float64
		for j, v := range xv {
			want += float64(values[i*in+j]) * float64(v)
			terms += math.Abs(float64(values[i*in+j]) * float64(v))
		}
		if math.Abs(got-want) > in*0x1p-24*terms { // the worst case of a float32 sum of so many terms
			t.Fatalf("output %d: parts add up to %g, the whole is %g", i, got, want)
		}
	}
}

// TestLoaderBytes: a rank's bytes are those of its parts.
func TestLoaderBytes(t *testing.T) {
	l := newLoading(t)
	l.Rows(weights.Matrix{Name: "plain", Out: out, In: in}, 0, 100)
	l.Columns(weights.Matrix{Name: "fp8", Out: out, In: in}, 0, 130)
	l.Vector("norm", 4)
	if err := l.Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := l.reader.Bytes(), int64(100*in*2+out*130+3*2*4+4*2); got != want {
		t.Errorf("counted %d bytes, want %d", got, want)
	}
}

func TestVectorWidens(t *testing.T) {
	l := newLoading(t)
	v := make([]float32, 4)
	l.st.GetFloat32(v, l.Vector("norm", 4))
	if err := l.st.Synchronize(t.Context()); err != nil || !slices.Equal(v, []float32{1, -2, .5, 3}) {
		t.Errorf("got %v, %v", v, err)
	}
}

// TestLoaderGoesOn: one run names all that is wrong.
func TestLoaderGoesOn(t *testing.T) {
	l := newLoading(t)
	for name, w := range map[string]hal.Weight{
		"missing": l.Rows(weights.Matrix{Name: "missing", Out: out, In: in}, 0, 1), "none": l.Rows(weights.Matrix{Name: "plain", Out: out, In: in}, out, out),
		"beyond": l.Columns(weights.Matrix{Name: "fp8", Out: out, In: in}, 1, in+1), "shape": l.Columns(weights.Matrix{Name: "plain", Out: in, In: out}, 0, 1),
	} {
		if w != (hal.Weight{}) {
			t.Errorf("%s: got a weight %+v", name, w)
		}
	}
	err := l.Err()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range []string{`tensor "missing" [300 260] is missing`, "rows [300, 300) are none", "columns [1, 261) lie outside", "has shape [300 260], want [260 300]"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error does not hold %q: %v", word, err)
		}
	}
}

// TestHeads: what a head has in one matrix is imported once for both uses, and a quantized part has the scales of its rows.
func TestHeads(t *testing.T) {
	l := newLoading(t)
	const size = 20 // 15 heads
	matrix := func(f weights.Form, from, to int) weights.Matrix {
		return weights.Matrix{Name: "plain", Out: out, In: in, Form: f, Heads: weights.Heads{Size: size, From: from, To: to}}
	}
	k, kh := l.Heads(matrix(weights.BFloat16, 0, 12), 3, 5)
	v, vh := l.Heads(matrix(weights.Stored, 12, size), 3, 5)
	if k != v || kh != (weights.Heads{Size: size, To: 12}) || vh != (weights.Heads{Size: size, From: 12, To: size}) {
		t.Errorf("imported %+v with %+v and %+v with %+v", k, kh, v, vh)
	}
	whole := l.elements(l.Linear(weights.Matrix{Name: "plain", Out: out, In: in}))
	if !slices.Equal(l.elements(k), whole[3*size*in:5*size*in]) {
		t.Error("heads 3 and 4 are not rows 60 to 99")
	}
	q, qh := l.Heads(matrix(weights.Int8, 12, size), 3, 5)
	if qh != (weights.Heads{Size: 8, To: 8}) || q.Data.DType != hal.I8 || q.Data.Rows != 16 || q.RowStart != 24 || q.Scale.Rows != 15*8 || q.BlockRows != 1 || q.BlockCols != in {
		t.Fatalf("quantized %+v with %+v", q, qh)
	}
	// Against a row of one 127 and zeros, which int8 holds, the outputs are 127 · a column, as far as int8 holds that.
	xv, y := make([]float32, in), make([]float32, 16)
	xv[77] = 127
	x, o := l.alloc.F32(1, in), l.alloc.F32(1, 16)
	l.st.PutFloat32(x, xv)
	l.st.MatMul(o, x, q)
	l.st.GetFloat32(y, o)
	if err := l.st.Synchronize(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, got := range y {
		row := whole[((3+i/8)*size+12+i%8)*in:][:in]
		want := 127 * float64(row[77])
		if math.Abs(float64(got)-want) > 127*(125.0/127/2+1e-3) { // half a step of elements up to 125
			t.Errorf("output %d is %g, want %g", i, got, want)
		}
	}
}

// TestInventory: a loader without a device asks for the same and makes nothing.
func TestInventory(t *testing.T) {
	var list nn.Inventory
	var alloc nn.Allocator
	l := nn.NewLoader(&alloc, &list, nil)
	m := weights.Matrix{Name: "m", Out: 6, In: 4, Form: weights.Int8}
	h := weights.Matrix{Name: "h", Out: 6, In: 4, Heads: weights.Heads{Size: 3, To: 1}}
	w := []hal.Weight{l.Linear(m), l.Rows(m, 1, 2), l.Columns(m, 1, 2)}
	head, _ := l.Heads(h, 0, 1)
	v := l.Vector("v", 5)
	if err := l.Err(); err != nil || !v.IsZero() || !head.Data.IsZero() || !w[0].Data.IsZero() {
		t.Errorf("%v, made %v, %v, %v", err, w, head, v)
	}
	want := []nn.Request{{Matrix: m}, {Matrix: m}, {Matrix: m}, {Matrix: h}, {Matrix: weights.Matrix{Name: "v", Out: 1, In: 5}, Vector: true}}
	if !slices.Equal(list.Tensors, want) {
		t.Errorf("asked for %+v", list.Tensors)
	}
}
