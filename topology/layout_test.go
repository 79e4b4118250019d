package topology

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		layout Layout
		rank   int
		want   Place
	}{
		{Layout{1, 1, false}, 0, Place{Rank: 0, Engine: 0, TP: 1, TPRank: 0, EP: 1, EPRank: 0}},
		{Layout{1, 1, true}, 0, Place{Rank: 0, Engine: 0, TP: 1, TPRank: 0, EP: 1, EPRank: 0}},
		{Layout{2, 2, false}, 3, Place{Rank: 3, Engine: 1, TP: 2, TPRank: 1, EP: 1, EPRank: 0}},
		{Layout{2, 2, true}, 3, Place{Rank: 3, Engine: 1, TP: 2, TPRank: 1, EP: 4, EPRank: 3}},
		{Layout{4, 1, true}, 2, Place{Rank: 2, Engine: 2, TP: 1, TPRank: 0, EP: 4, EPRank: 2}},
	} {
		if got := tt.layout.Place(tt.rank); got != tt.want {
			t.Errorf("%+v: place of rank %d is %+v, want %+v", tt.layout, tt.rank, got, tt.want)
		}
	}
}

func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		layout Layout
		want   []Group
	}{
		{Layout{3, 2, true}, []Group{{"ep", []int{0, 1, 2}}}},
		{Layout{1, 2, true}, []Group{{"ep", []int{0}}}},
		{Layout{3, 2, false}, []Group{{"dp0", []int{0}}, {"dp1", []int{1}}, {"dp2", []int{2}}}},
	} {
		if got := tt.layout.Groups(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v: groups %v, want %v", tt.layout, got, tt.want)
		}
	}
}

// TestRanksCoverTheLayout holds random layouts to it: the ranks of the engines of the groups are all ranks, once and in order, and
// a rank's place leads back to it.
func TestRanksCoverTheLayout(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		l := Layout{1 + r.IntN(9), 1 + r.IntN(9), r.IntN(2) == 0}
		next := 0
		for _, g := range l.Groups() {
			for _, e := range g.Engines {
				from, to := l.Ranks(e)
				for rank := from; rank < to; rank++ {
					p := l.Place(rank)
					if rank != next || p.Engine != e || p.Engine*p.TP+p.TPRank != rank || p.EPRank >= p.EP {
						t.Fatalf("%+v: rank %d of engine %d, want %d; its place is %+v", l, rank, e, next, p)
					}
					next++
				}
			}
		}
		if next != l.World() {
			t.Fatalf("%+v: groups have %d ranks, want %d", l, next, l.World())
		}
	}
}
