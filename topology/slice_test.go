package topology

import (
	"math/rand/v2"
	"testing"
)

// TestSlicesPartition holds every way to cut to it: the parts follow each other without gap or overlap from 0 to n.
func TestSlicesPartition(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		n, parts := r.IntN(200), 1+r.IntN(20)
		partition(t, "Slice", n, parts, Slice)
		partition(t, "VocabSlice", n, parts, VocabSlice)
		m := ExpertMap{Experts: parts * (1 + r.IntN(20)), Ranks: parts}
		partition(t, "ExpertMap", m.Experts, parts, func(_, _, rank int) (int, int) { return m.Range(rank) })
		for rank := range parts {
			from, to := m.Range(rank)
			if to-from != m.Experts/m.Ranks {
				t.Fatalf("%+v: rank %d has experts %d … %d, want %d", m, rank, from, to-1, m.Experts/m.Ranks)
			}
			for e := from; e < to; e++ {
				if m.Rank(e) != rank {
					t.Fatalf("%+v: expert %d of rank %d is at rank %d by the map", m, e, rank, m.Rank(e))
				}
			}
		}
	}
}

func partition(t *testing.T, name string, n, parts int, slice func(n, parts, part int) (from, to int)) {
	t.Helper()
	end := 0
	for part := range parts {
		from, to := slice(n, parts, part)
		if from != end || to < from {
			t.Fatalf("%s(%d, %d, %d) = %d, %d, want from %d on", name, n, parts, part, from, to, end)
		}
		end = to
	}
	if end != n {
		t.Fatalf("%s(%d, %d, …) ends at %d", name, n, parts, end)
	}
}

func TestSliceSizes(t *testing.T) {
	for _, tt := range []struct {
		name           string
		slice          func(n, parts, part int) (from, to int)
		n, parts, part int
		from, to       int
	}{
		{"even", Slice, 8, 4, 1, 2, 4},
		{"the rest goes to the first", Slice, 10, 4, 1, 3, 6},
		{"the rest is over", Slice, 10, 4, 3, 8, 10},
		{"vocabulary, even", VocabSlice, 8, 4, 1, 2, 4},
		{"vocabulary, full part", VocabSlice, 10, 4, 1, 3, 6},
		{"vocabulary, short last part", VocabSlice, 10, 4, 3, 9, 10},
		{"vocabulary, nothing left", VocabSlice, 5, 4, 3, 5, 5},
		{"of DeepSeek-V2-Lite over 8", VocabSlice, 102400, 8, 7, 89600, 102400},
	} {
		if from, to := tt.slice(tt.n, tt.parts, tt.part); from != tt.from || to != tt.to {
			t.Errorf("%s: part %d of %d in %d is %d, %d, want %d, %d", tt.name, tt.part, tt.n, tt.parts, from, to, tt.from, tt.to)
		}
	}
}
