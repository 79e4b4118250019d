package actors_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/moerack/moerack/actors"
)

// TestBatchEnds: what ended before the first rank began is padding for all ranks, what ends later for none.
func TestBatchEnds(t *testing.T) {
	rows := []actors.Rows{{Request: 1, Tokens: []int32{5, 6}}, {Request: 2, Tokens: []int32{7}}, {Request: 3, Tokens: []int32{8}}}
	b := &actors.Batch{Rows: rows}
	b.End(2)
	b.End(9)
	want := []bool{false, true, false}
	if got := b.Begin(); !slices.Equal(got, want) {
		t.Errorf("the first rank masks %v, want %v", got, want)
	}
	b.End(1)
	if got := b.Begin(); !slices.Equal(got, want) {
		t.Errorf("the second rank masks %v, want %v", got, want)
	}
	if got := (&actors.Batch{Rows: rows}).Begin(); got != nil {
		t.Errorf("masked %v, nothing has ended", got)
	}
	if b.Tokens() != 4 {
		t.Errorf("%d tokens, want those voted for", b.Tokens())
	}
}

// TestBatchIsTheSameForAllRanks: whenever requests end, the ranks of an engine mask the same rows.
func TestBatchIsTheSameForAllRanks(t *testing.T) {
	for range 200 {
		b := &actors.Batch{Rows: []actors.Rows{{Request: 1}, {Request: 2}}}
		var all sync.WaitGroup
		masks := make([][]bool, 3)
		for r := range masks {
			all.Go(func() { masks[r] = slices.Clone(b.Begin()) })
		}
		all.Go(func() { b.End(1) })
		all.Go(func() { b.End(2) })
		all.Wait()
		if !slices.Equal(masks[0], masks[1]) || !slices.Equal(masks[0], masks[2]) {
			t.Fatalf("ranks mask %v", masks)
		}
	}
}
