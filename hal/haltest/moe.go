package haltest

import (
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
)

// testAttention stores three tokens of one sequence in blocks that lie apart, and one of another.
func testAttention(r *rig) {
	a := hal.MLAAttention{Heads: 2, Latent: 3, Rope: 2, BlockSize: 2, Scale: 0.5}
	width := a.Latent + a.Rope
	cache := r.alloc(hal.F32, 8, width)
	rows := r.random(5 * width)
	r.st.StoreKV(cache, r.f32(5, rows...), r.i32(1, 6, 7, 2, 0, -1)) // sequence 0: blocks 3, 1; sequence 1: block 0; one padding row
	kept := r.floats(cache)
	for slot, row := range map[int]int{6: 0, 7: 1, 2: 2, 0: 3} {
		if !slices.Equal(kept[slot*width:][:width], rows[row*width:][:width]) {
			r.Errorf("slot %d does not hold row %d", slot, row)
		}
	}
	for _, slot := range []int{1, 3, 4, 5} {
		if v := kept[slot*width:][:width]; slices.Max(v) != 0 || slices.Min(v) != 0 {
			r.Errorf("slot %d was written: %v", slot, v)
		}
	}
	q := r.random(4 * a.Heads * width)
	out := r.alloc(hal.F32, 4, a.Heads*a.Latent)
	r.st.MLAAttention(out, r.f32(4, q...), cache, r.i32(2, 3, 1, 0, 0), r.i32(1, 0, 1, 0, -1), r.i32(1, 2, 0, 1, 0), a)
	var want []float64
	for t, tokens := range [][]int{{0, 1, 2}, {3}, {0, 1}, nil} {
		for h := range a.Heads {
			sum, acc := 0.0, make([]float64, a.Latent)
			for _, k := range tokens {
				s := 0.0
				for i := range width {
					s += float64(q[(t*a.Heads+h)*width+i]) * float64(rows[k*width+i])
				}
				w := math.Exp(s * float64(a.Scale))
				sum += w
				for i := range acc {
					acc[i] += w * float64(rows[k*width+i])
				}
			}
			for _, v := range acc {
				if sum > 0 {
					v /= sum
				}
				want = append(want, v)
			}
		}
	}
	r.near("attention", r.floats(out), want, tol)
}

// testRoute holds cases small enough to work out by hand: four experts in two groups.
func testRoute(r *rig) {
	logit := func(p float64) float32 { return float32(math.Log(p / (1 - p))) } // sigmoid⁻¹
	ln := func(p float64) float32 { return float32(math.Log(p)) }              // softmax of logs that sum to 1
	for _, c := range []struct {
		name    string
		router  hal.Router
		logits  []float32
		bias    []float32
		ids     []int32
		weights []float64
	}{
		{"greedy", hal.Router{Scoring: hal.Softmax, Method: hal.Greedy, Scale: 2}, []float32{ln(.1), ln(.4), ln(.2), ln(.3)}, nil, []int32{1, 3}, []float64{.8, .6}},
		{"greedy, normalised", hal.Router{Scoring: hal.Softmax, Method: hal.Greedy, Scale: 1, Normalize: true}, []float32{ln(.1), ln(.4), ln(.1), ln(.4)}, nil, []int32{1, 3}, []float64{.5, .5}},
		{"group limited", hal.Router{Scoring: hal.Softmax, Method: hal.GroupLimitedGreedy, Groups: 2, TopGroups: 1, Scale: 1}, []float32{ln(.1), ln(.4), ln(.2), ln(.3)}, nil, []int32{1, 0}, []float64{.4, .1}},
		{"noaux_tc: the bias chooses, the score weighs", hal.Router{Scoring: hal.Sigmoid, Method: hal.NoAuxTC, Groups: 2, TopGroups: 1, Scale: 2.5, Normalize: true}, []float32{logit(.9), logit(.8), logit(.2), logit(.6)}, []float32{0, 0, 1, .5}, []int32{3, 2}, []float64{2.5 * .75, 2.5 * .25}},
		{"ties go to the lower expert", hal.Router{Scoring: hal.Sigmoid, Method: hal.NoAuxTC, Groups: 1, TopGroups: 1, Scale: 1}, []float32{0, 0, 0, 0}, []float32{0, 0, 0, 0}, []int32{0, 1}, []float64{.5, .5}},
	} {
		ids, weights := r.alloc(hal.I32, 1, 2), r.alloc(hal.F32, 1, 2)
		var bias hal.Tensor
		if c.bias != nil {
			bias = r.f32(1, c.bias...)
		}
		r.st.Route(ids, weights, r.f32(1, c.logits...), bias, hal.Tensor{}, c.router)
		if got := r.ints(ids); !slices.Equal(got, c.ids) {
			r.Errorf("%s: chose %v, want %v", c.name, got, c.ids)
		}
		alone := r.floats(weights)
		r.near(c.name, alone, c.weights, tol)

		nan := float32(math.NaN())
		masked := slices.Concat([]float32{nan, nan, nan, nan}, c.logits, c.logits)
		ids3, weights3 := r.i32(3, 9, 9, 9, 9, 9, 9), r.f32(3, 9, 9, 9, 9, 9, 9)
		r.st.Route(ids3, weights3, r.f32(3, masked...), bias, r.i32(1, -1, 7, -2), c.router)
		if got, want := r.ints(ids3), []int32{-1, -1, c.ids[0], c.ids[1], -1, -1}; !slices.Equal(got, want) {
			r.Errorf("%s between padding: chose %v, want %v", c.name, got, want)
		}
		if got, want := r.floats(weights3), []float32{0, 0, alone[0], alone[1], 0, 0}; !slices.Equal(got, want) {
			r.Errorf("%s between padding: weights %v, want %v", c.name, got, want)
		}
	}
}

// testExperts runs a whole MoE layer step by step: three rows, two picks, four experts of which one has no rows.
func testExperts(r *rig) {
	const rows, picks, experts, hidden, inner = 3, 2, 4, 6, 5
	ids := []int32{3, 0, 0, 1, 3, 1}
	xv, wv, sv := r.random(rows*hidden), r.random(rows*picks), r.random(rows*hidden)
	x := r.f32(rows, xv...)
	sorted, index, counts := r.alloc(hal.F32, rows*picks, hidden), r.alloc(hal.I32, rows, picks), r.alloc(hal.I32, 1, experts)
	r.st.Dispatch(sorted, index, counts, x, r.i32(rows, ids...), 0)
	if got, want := r.ints(counts), []int32{2, 2, 0, 2}; !slices.Equal(got, want) {
		r.Errorf("counts %v, want %v", got, want)
	}
	if got, want := r.ints(index), []int32{4, 0, 1, 2, 5, 3}; !slices.Equal(got, want) {
		r.Errorf("index %v, want %v", got, want)
	}
	gate, up, down := make([]hal.Weight, experts), make([]hal.Weight, experts), make([]hal.Weight, experts)
	gv, uv, dv := make([][]float32, experts), make([][]float32, experts), make([][]float32, experts)
	for e := range experts {
		gate[e], gv[e] = r.weight(inner, hidden)
		up[e], uv[e] = r.weight(inner, hidden)
		down[e], dv[e] = r.weight(hidden, inner)
	}
	act, y, out := r.alloc(hal.F32, rows*picks, inner), r.alloc(hal.F32, rows*picks, hidden), r.alloc(hal.F32, rows, hidden)
	r.st.GroupedSwiGLU(act, sorted, counts, gate, up)
	r.st.GroupedMatMul(y, act, counts, down)
	r.st.Combine(out, y, index, r.f32(rows, wv...), r.f32(rows, sv...))

	want := make([]float64, 0, rows*hidden)
	for t := range rows {
		acc := make([]float64, hidden)
		for k := range picks {
			e := ids[t*picks+k]
			g, u := mul(xv[t*hidden:][:hidden], gv[e], hidden), mul(xv[t*hidden:][:hidden], uv[e], hidden)
			h := make([]float32, inner)
			for i := range h {
				h[i] = float32(g[i] / (1 + math.Exp(-g[i])) * u[i])
			}
			for i, v := range mul(h, dv[e], inner) {
				acc[i] += float64(wv[t*picks+k]) * v
			}
		}
		for i, v := range acc {
			want = append(want, v+float64(sv[t*hidden+i]))
		}
	}
	r.near("experts", r.floats(out), want, 1e-4)
	r.st.Combine(out, y, index, r.f32(rows, wv...), hal.Tensor{})
	for i := range want {
		want[i] -= float64(sv[i])
	}
	r.near("experts without shared", r.floats(out), want, 1e-4)
}

// testPartialDispatch gives each of three ranks the pairs of its two experts out of six. Two picks are of no expert. What the ranks
// compute in memory larger than their pairs, combined in one place, is what one rank computes.
func testPartialDispatch(r *rig) {
	const rows, picks, each, ranks, hidden, room = 4, 3, 2, 3, 5, 9
	ids := []int32{5, 0, 3, 2, -1, 0, -1, -1, -1, 3, 2, 5}
	x, weights := r.f32(rows, r.random(rows*hidden)...), r.f32(rows, r.random(rows*picks)...)
	gate, up, down := make([]hal.Weight, each*ranks), make([]hal.Weight, each*ranks), make([]hal.Weight, each*ranks)
	for e := range gate {
		gate[e], _ = r.weight(7, hidden)
		up[e], _ = r.weight(7, hidden)
		down[e], _ = r.weight(hidden, 7)
	}
	// serve runs experts [first, first+n) and returns their rows, where each pair's is, and how many each expert had.
	serve := func(first, n int) (y hal.Tensor, index, counts []int32) {
		marks := r.random(room * hidden)
		sorted, ix, cs := r.f32(room, marks...), r.i32(rows, slices.Repeat([]int32{77}, rows*picks)...), r.i32(1, slices.Repeat([]int32{77}, n)...)
		r.st.Dispatch(sorted, ix, cs, x, r.i32(rows, ids...), first)
		total := 0
		for _, c := range r.ints(cs) {
			total += int(c)
		}
		if got := r.floats(sorted.Slice(total, room)); !slices.Equal(got, marks[total*hidden:]) {
			r.Errorf("experts from %d: rows behind the last pair were written", first)
		}
		act, y := r.alloc(hal.F32, room, 7), r.f32(room, marks...)
		r.st.GroupedSwiGLU(act, sorted, cs, gate[first:first+n], up[first:first+n])
		r.st.GroupedMatMul(y, act, cs, down[first:first+n])
		if got := r.floats(y.Slice(total, room)); !slices.Equal(got, marks[total*hidden:]) {
			r.Errorf("experts from %d: grouped ops wrote behind the rows that the counts name", first)
		}
		return y, r.ints(ix), r.ints(cs)
	}
	want := r.alloc(hal.F32, rows, hidden)
	y, index, counts := serve(0, each*ranks)
	if w := []int32{6, 0, 4, 2, -1, 1, -1, -1, -1, 5, 3, 7}; !slices.Equal(index, w) {
		r.Errorf("index %v, want %v", index, w)
	}
	if w := []int32{2, 0, 2, 2, 0, 2}; !slices.Equal(counts, w) {
		r.Errorf("counts %v, want %v", counts, w)
	}
	r.st.Combine(want, y, r.i32(rows, index...), weights, hal.Tensor{})

	var all []float32 // the ranks' rows, one after the other
	home := slices.Repeat([]int32{-1}, rows*picks)
	for rank := range ranks {
		y, index, _ := serve(rank*each, each)
		for pair, i := range index {
			switch mine := int(ids[pair])/each == rank && ids[pair] >= 0; {
			case mine != (i >= 0):
				r.Errorf("rank %d: pair %d of expert %d has index %d", rank, pair, ids[pair], i)
			case mine:
				home[pair] = int32(len(all)/hidden) + i
			}
		}
		all = append(all, r.floats(y)...)
	}
	got := r.alloc(hal.F32, rows, hidden)
	r.st.Combine(got, r.f32(ranks*room, all...), r.i32(rows, home...), weights, hal.Tensor{})
	if g, w := r.floats(got), r.floats(want); !slices.Equal(g, w) {
		r.Errorf("three ranks give %v, one gives %v", g, w)
	}
}

// testMissingTerms leaves terms out of a sum: some, all with a shared row, all without.
func testMissingTerms(r *rig) {
	y, w := r.f32(2, 2, 3, 5, 7), r.f32(3, 10, 1, 10, 1, 10, 1)
	index := r.i32(3, 1, 0, -1, 1, -1, -1)
	shared, out := r.f32(3, .5, .5, .5, .5, .25, -.25), r.f32(3, 9, 9, 9, 9, 9, 9)
	r.st.Combine(out, y, index, w, hal.Tensor{})
	if got, want := r.floats(out), []float32{52, 73, 5, 7, 0, 0}; !slices.Equal(got, want) {
		r.Errorf("got %v, want %v", got, want)
	}
	r.st.Combine(shared, y, index, w, shared)
	if got, want := r.floats(shared), []float32{52.5, 73.5, 5.5, 7.5, .25, -.25}; !slices.Equal(got, want) {
		r.Errorf("with shared, in place: got %v, want %v", got, want)
	}
}
