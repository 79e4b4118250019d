package haltest

import (
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
)

// testExpanded compares attention in its plain form with the formula: two sequences in blocks that lie apart, a padding row, weights whose
// rows for keys and values alternate; and demands the bits of a row alone.
func testExpanded(r *rig) {
	const n, other = 70, 3 // positions
	a := hal.MLAExpanded{Heads: 2, Latent: 6, Nope: 3, Rope: 2, Value: 4, KeyRows: 7, ValueRows: 7, ValueFrom: 3, BlockSize: 4, Scale: 0.4}
	width, head := a.Latent+a.Rope, a.Nope+a.Rope
	up, w := r.weight(a.Heads*7, a.Latent)
	blocks := (n + a.BlockSize - 1) / a.BlockSize
	cache := r.alloc(hal.F32, (2*blocks+1)*a.BlockSize, width)
	tables := make([]int32, 2*blocks)
	for i := range blocks {
		tables[i] = int32(2 * (blocks - i)) // sequence 0, backwards
	}
	tables[blocks] = 1
	rows := r.random((n + other) * width)
	slots := make([]int32, n+other)
	for i := range slots {
		seq, p := 0, i
		if i >= n {
			seq, p = 1, i-n
		}
		slots[i] = tables[seq*blocks+p/a.BlockSize]*int32(a.BlockSize) + int32(p%a.BlockSize)
	}
	r.st.StoreKV(cache, r.f32(n+other, rows...), r.i32(1, slots...))
	seqs, positions := []int32{0, 0, 0, -1, 1, 1}, []int32{0, 64, n - 1, 0, 0, other - 1}
	q := r.random(len(seqs) * a.Heads * head)
	out := r.alloc(hal.F32, len(seqs), a.Heads*a.Value)
	r.st.MLAExpanded(out, r.f32(len(seqs), q...), cache, r.i32(2, tables...), r.i32(1, seqs...), r.i32(1, positions...), up, up, a)
	got := r.floats(out)
	var want []float64
	for t, seq := range seqs {
		for h := range a.Heads {
			row := q[(t*a.Heads+h)*head:][:head]
			acc, sum := make([]float64, a.Value), 0.0
			for p := 0; seq >= 0 && p <= int(positions[t]); p++ {
				c := rows[(int(seq)*n+p)*width:][:width]
				s := 0.0
				for i, k := range mul(c[:a.Latent], w[(h*7)*a.Latent:][:a.Nope*a.Latent], a.Latent) {
					s += k * float64(row[i])
				}
				for i := range a.Rope {
					s += float64(c[a.Latent+i]) * float64(row[a.Nope+i])
				}
				e := math.Exp(s * float64(a.Scale))
				sum += e
				for i, v := range mul(c[:a.Latent], w[(h*7+a.ValueFrom)*a.Latent:][:a.Value*a.Latent], a.Latent) {
					acc[i] += e * v
				}
			}
			for _, v := range acc {
				want = append(want, v/max(sum, math.SmallestNonzeroFloat64))
			}
		}
	}
	r.near("attention", got, want, 1e-4)
	for t := range seqs {
		alone := r.alloc(hal.F32, 1, a.Heads*a.Value)
		r.st.MLAExpanded(alone, r.f32(1, q[t*a.Heads*head:][:a.Heads*head]...), cache, r.i32(2, tables...), r.i32(1, seqs[t]), r.i32(1, positions[t]), up, up, a)
		if !slices.Equal(r.floats(alone), got[t*a.Heads*a.Value:][:a.Heads*a.Value]) {
			r.Errorf("row %d alone has other bits", t)
		}
	}
	bad := a
	bad.ValueFrom = 4
	for name, f := range map[string]func(){
		"values beyond their head": func() {
			r.st.MLAExpanded(out, r.f32(len(seqs), q...), cache, r.i32(2, tables...), r.i32(1, seqs...), r.i32(1, positions...), up, up, bad)
		},
		"block": func() {
			r.st.MLAExpanded(out, r.f32(len(seqs), q...), cache, r.i32(2, append([]int32{99}, tables[1:]...)...), r.i32(1, seqs...), r.i32(1, positions...), up, up, a)
		},
	} {
		r.expectFault("MLAExpanded: "+name, f)
	}
}
