package kerneltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// testRoute compares the router with a plain sort-based one in float64 on random logits, with exact cases for ties, and with
// NaN for termination.
func testRoute(t *testing.T, k kernels.Table) {
	g := newGen(t, 11)
	for _, r := range []kernels.Router{
		{Method: kernels.Greedy, Groups: 1, Scale: 1},
		{Method: kernels.Greedy, Groups: 1, Scale: 2.5, Normalize: true, Sigmoid: true},
		{Method: kernels.GroupLimitedGreedy, Groups: 4, TopGroups: 2, Scale: 16},
		{Method: kernels.NoAuxTC, Groups: 4, TopGroups: 2, Scale: 2.5, Normalize: true, Sigmoid: true},
		{Method: kernels.NoAuxTC, Groups: 1, TopGroups: 1, Scale: 1, Sigmoid: true},
	} {
		for i, experts := range []int{8, 16, 64, 16} {
			const rows = 9
			picks := []int{4, 4, 4, 1}[i] // one pick is not normalised
			logits, bias := g.mat(rows, experts), g.mat(1, experts).Row(0)
			ids, weights := route(k, logits, bias, r, picks)
			for row := range rows {
				wantIDs, wantW := route64(logits.Row(row), bias, r, picks)
				if !slices.Equal(ids.Row(row), wantIDs) {
					t.Fatalf("%+v, %d experts: chose %v, want %v", r, experts, ids.Row(row), wantIDs)
				}
				for i, w := range wantW {
					near(t, fmt.Sprintf("%+v weight %d", r, i), weights.Row(row)[i], w, w, 1e-5)
				}
			}
			testRouteBroken(t, k, g, r, experts)
			testRouteMasked(t, k, g, r, logits, bias, ids, weights)
		}
	}
	equal := kernels.Mat{Data: make([]float32, 8), Rows: 1, Cols: 8, Stride: 8}
	for _, m := range []kernels.TopKMethod{kernels.Greedy, kernels.GroupLimitedGreedy, kernels.NoAuxTC} {
		ids, _ := route(k, equal, make([]float32, 8), kernels.Router{Method: m, Groups: 4, TopGroups: 2, Scale: 1}, 3)
		if want := []int32{0, 1, 2}; !slices.Equal(ids.Row(0), want) {
			t.Errorf("method %d: equal scores chose %v, want the lower experts %v", m, ids.Row(0), want)
		}
	}
}

// testRouteBroken demands distinct experts in range whatever the logits are.
func testRouteBroken(t *testing.T, k kernels.Table, g gen, r kernels.Router, experts int) {
	t.Helper()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for range 20 {
		logits := g.mat(1, experts)
		for i := range logits.Row(0) {
			logits.Row(0)[i] = []float32{nan, inf, -inf, 1, nan}[g.IntN(5)]
		}
		ids, weights := route(k, logits, make([]float32, experts), r, 4)
		if anyNaN := slices.ContainsFunc(logits.Row(0), isNaN); anyNaN && !slices.ContainsFunc(weights.Row(0), isNaN) {
			t.Fatalf("%+v: logits %v gave weights %v: the NaN must show", r, logits.Row(0), weights.Row(0))
		}
		got := slices.Sorted(slices.Values(ids.Row(0)))
		if got[0] < 0 || int(got[3]) >= experts || len(slices.Compact(got)) != 4 {
			t.Fatalf("%+v: logits %v chose %v: must be distinct experts", r, logits.Row(0), ids.Row(0))
		}
	}
}

// testRouteMasked puts padding between rows: it chooses nothing, whatever its logits are, and changes no bit of the others.
func testRouteMasked(t *testing.T, k kernels.Table, g gen, r kernels.Router, logits kernels.Mat, bias []float32, ids kernels.Ints, weights kernels.Mat) {
	t.Helper()
	seqs := make([]int32, logits.Rows)
	for row := range seqs {
		seqs[row] = int32(g.IntN(3)) - 1
		if row < 3 {
			seqs[row] = []int32{-1, 0, math.MinInt32}[row]
		}
		if seqs[row] < 0 {
			logits.Row(row)[g.IntN(logits.Cols)] = float32(math.NaN())
		}
	}
	gotIDs, gotWeights := routeRows(k, logits, bias, seqs, r, ids.Cols)
	for row, seq := range seqs {
		if seq >= 0 {
			same(t, "routed among padding", gotWeights.Row(row), weights.Row(row))
			if !slices.Equal(gotIDs.Row(row), ids.Row(row)) {
				t.Fatalf("%+v: among padding chose %v, want %v", r, gotIDs.Row(row), ids.Row(row))
			}
			continue
		}
		for i, id := range gotIDs.Row(row) {
			if w := gotWeights.Row(row)[i]; id != -1 || w != 0 {
				t.Fatalf("%+v: padding row %d got expert %d with weight %g, want -1 with 0", r, row, id, w)
			}
		}
	}
}

func route(k kernels.Table, logits kernels.Mat, bias []float32, r kernels.Router, picks int) (kernels.Ints, kernels.Mat) {
	return routeRows(k, logits, bias, nil, r, picks)
}

// routeRows routes into memory that holds something already. // logits (T, E), seqs (T) or nil
func routeRows(k kernels.Table, logits kernels.Mat, bias []float32, seqs []int32, r kernels.Router, picks int) (kernels.Ints, kernels.Mat) {
	ids := kernels.Ints{Data: make([]int32, logits.Rows*picks), Rows: logits.Rows, Cols: picks, Stride: picks}
	for i := range ids.Data {
		ids.Data[i] = math.MaxInt32
	}
	weights := guarded(logits.Rows, picks)
	k.Route(ids, weights, logits, bias, seqs, r, make([]float32, kernels.RouterScratch(logits.Cols, r.Groups)))
	return ids, weights
}

func route64(logits, bias []float32, r kernels.Router, picks int) ([]int32, []float64) {
	scores := make([]float64, len(logits))
	var sum float64
	for _, l := range logits {
		sum += math.Exp(float64(l))
	}
	for e, l := range logits {
		scores[e] = math.Exp(float64(l)) / sum
		if r.Sigmoid {
			scores[e] = 1 / (1 + math.Exp(-float64(l)))
		}
	}
	choice := slices.Clone(scores)
	if r.Method == kernels.NoAuxTC {
		for e := range choice {
			choice[e] += float64(bias[e])
		}
	}
	if r.Method != kernels.Greedy {
		keepGroups64(choice, r)
	}
	order := make([]int32, len(logits))
	for e := range order {
		order[e] = int32(e)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return compare(choice[b], choice[a]) })
	ids := order[:picks]
	slices.SortStableFunc(ids, func(a, b int32) int { return compare(scores[b], scores[a]) })
	weights, total := make([]float64, picks), 0.0
	for i, e := range ids {
		weights[i] = scores[e]
		total += scores[e]
	}
	for i := range weights {
		if r.Normalize && picks > 1 {
			weights[i] /= total
		}
		weights[i] *= float64(r.Scale)
	}
	return ids, weights
}

func keepGroups64(choice []float64, r kernels.Router) {
	size := len(choice) / r.Groups
	order, value := make([]int, r.Groups), make([]float64, r.Groups)
	for g := range order {
		order[g] = g
		sorted := slices.Sorted(slices.Values(choice[g*size : (g+1)*size]))
		value[g] = sorted[size-1]
		if r.Method == kernels.NoAuxTC {
			value[g] += sorted[size-2]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(value[b], value[a]) })
	for _, g := range order[r.TopGroups:] {
		for e := g * size; e < (g+1)*size; e++ {
			choice[e] = 0
			if r.Method == kernels.NoAuxTC {
				choice[e] = math.Inf(-1)
			}
		}
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func isNaN(v float32) bool { return v != v }
