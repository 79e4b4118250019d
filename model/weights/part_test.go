package weights_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
)

// counting returns n bytes that tell their places apart.
func counting(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	return data
}

// TestRowsReassemble: consecutive row parts are consecutive runs of the whole, each with all the scales.
func TestRowsReassemble(t *testing.T) {
	for _, model := range []string{"tiny-v3", "tiny-v3-fp8"} {
		const name = "model.layers.0.self_attn.kv_b_proj.weight"
		c := mustOpen(t, filepath.Join(models, model))
		stored, err := c.Tensor(name, weights.Want{})
		do(t, err)
		out, in := stored.Shape[0], stored.Shape[1]
		r := c.NewReader()
		var all []byte
		from := 0
		for _, to := range append([]int{1, 37, 100}, out) {
			l, err := r.LinearRows(weights.Matrix{Name: name, Out: out, In: in}, from, to)
			do(t, err)
			if !slices.Equal(l.Weight.Shape, []int{to - from, in}) || (l.Scale != nil) != (l.Weight.DType == weights.F8E4M3) {
				t.Errorf("%s: rows [%d, %d): shape %v, scales %v", model, from, to, l.Weight.Shape, l.Scale)
			}
			all = append(all, l.Weight.Data...)
			from = to
		}
		if !bytes.Equal(all, stored.Data) {
			t.Errorf("%s: the parts are not the whole", model)
		}
	}
}

// TestPartsCount: a part counts its own bytes, and those of the scales that it touches.
func TestPartsCount(t *testing.T) {
	const out, in = 300, 260 // 3 × 3 blocks
	c := mustOpen(t, write(t,
		weightstest.Tensor{Name: "b", DType: "BF16", Shape: []int{out, in}, Data: counting(2 * out * in)},
		weightstest.Tensor{Name: "q", DType: "F8_E4M3", Shape: []int{out, in}, Data: counting(out * in)},
		weightstest.Tensor{Name: "q_scale_inv", DType: "F32", Shape: []int{3, 3}, Data: weightstest.F32(1, 2, 3, 4, 5, 6, 7, 8, 9)},
	))
	type ask func(r *weights.Reader, name string, from, to int) (weights.Linear, error)
	rows := func(r *weights.Reader, name string, from, to int) (weights.Linear, error) {
		return r.LinearRows(weights.Matrix{Name: name, Out: out, In: in}, from, to)
	}
	columns := func(r *weights.Reader, name string, from, to int) (weights.Linear, error) {
		return r.LinearColumns(weights.Matrix{Name: name, Out: out, In: in}, from, to)
	}
	for _, tt := range []struct {
		what     string
		ask      ask
		from, to int
		plain    int64 // bytes of b
		fp8      int64 // bytes of q and of its scales
	}{
		{"rows", rows, 0, out, 2 * out * in, out*in + 36},
		{"rows", rows, 0, 1, 2 * in, in + 12},
		{"rows", rows, 37, 128, 2 * 91 * in, 91*in + 12},
		{"rows", rows, 127, 129, 2 * 2 * in, 2*in + 24},
		{"rows", rows, 100, 257, 2 * 157 * in, 157*in + 36},
		{"columns", columns, 0, in, 2 * out * in, out*in + 36},
		{"columns", columns, 128, 129, 2 * out, out + 12},
		{"columns", columns, 127, 257, 2 * out * 130, out*130 + 36},
	} {
		for name, want := range map[string]int64{"b": tt.plain, "q": tt.fp8} {
			r := c.NewReader()
			for range 2 { // the same part again counts nothing
				l, err := tt.ask(r, name, tt.from, tt.to)
				do(t, err)
				if l.Scale != nil && len(l.Scale.Data) != 36 {
					t.Errorf("%s of %s: %d bytes of scales, want all", tt.what, name, len(l.Scale.Data))
				}
			}
			if r.Bytes() != want {
				t.Errorf("%s [%d, %d) of %s: counted %d bytes, want %d", tt.what, tt.from, tt.to, name, r.Bytes(), want)
			}
		}
	}
	r := c.NewReader()
	for _, p := range [][2]int{{0, 100}, {100, 300}, {100, 300}} {
		_, err := r.LinearRows(weights.Matrix{Name: "b", Out: out, In: in}, p[0], p[1])
		do(t, err)
	}
	if r.Bytes() != 2*out*in {
		t.Errorf("two parts that make the whole count %d bytes, want %d", r.Bytes(), 2*out*in)
	}
}

func TestPartFaults(t *testing.T) {
	r := mustOpen(t, write(t,
		weightstest.Tensor{Name: "m", DType: "BF16", Shape: []int{4, 6}, Data: counting(48)},
		weightstest.Tensor{Name: "bare", DType: "F8_E4M3", Shape: []int{4, 6}, Data: counting(24)},
	)).NewReader()
	for _, tt := range []struct {
		name     string
		rows     bool
		out, in  int
		from, to int
		words    []string
	}{
		{"m", true, 4, 6, 2, 5, []string{`tensor "m": rows [2, 5) lie outside the matrix, want 0 ≤ from < to ≤ 4`}},
		{"m", true, 4, 6, -1, 2, []string{"rows [-1, 2) lie outside"}},
		{"m", true, 4, 6, 3, 2, []string{"rows [3, 2) lie outside"}},
		{"m", true, 4, 6, 4, 4, []string{"rows [4, 4) are none", "must not ask"}},
		{"m", false, 4, 6, 0, 7, []string{"columns [0, 7) lie outside the matrix, want 0 ≤ from < to ≤ 6"}},
		{"m", false, 4, 6, 6, 6, []string{"columns [6, 6) are none"}},
		{"m", true, 6, 4, 0, 1, []string{"has shape [4 6], want [6 4]"}},
		{"m", false, 6, 4, 0, 1, []string{"has shape [4 6], want [6 4]"}},
		{"bare", true, 4, 6, 0, 1, []string{`tensor "bare_scale_inv" [1 1] is missing`}},
		{"bare", false, 4, 6, 0, 1, []string{`tensor "bare_scale_inv" [1 1] is missing`}},
	} {
		ask := r.LinearColumns
		if tt.rows {
			ask = r.LinearRows
		}
		l, err := ask(weights.Matrix{Name: tt.name, Out: tt.out, In: tt.in}, tt.from, tt.to)
		mustFail(t, err, tt.words...)
		if l.Weight.Data != nil {
			t.Errorf("%s: a refused request gave data", tt.name)
		}
	}
	if r.Bytes() != 0 {
		t.Errorf("refused requests counted %d bytes", r.Bytes())
	}
}
