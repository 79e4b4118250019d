package kv

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestPoolOrder(t *testing.T) {
	p := NewPool(5)
	a, _ := p.Alloc(2)
	b, _ := p.Alloc(2)
	if !slices.Equal(a, []int32{0, 1}) || !slices.Equal(b, []int32{2, 3}) {
		t.Fatalf("a new pool gave %v, %v", a, b)
	}
	if got, ok := p.Alloc(2); ok || got != nil || p.FreeBlocks() != 1 {
		t.Fatalf("Alloc(2) of 1 free block = %v, %v; %d free", got, ok, p.FreeBlocks())
	}
	p.Free(a)
	if again, _ := p.Alloc(2); !slices.Equal(again, a) {
		t.Errorf("after freeing %v got %v", a, again)
	}
	if none, ok := p.Alloc(0); !ok || len(none) != 0 {
		t.Errorf("Alloc(0) = %v, %v", none, ok)
	}
	if _, ok := p.Alloc(-1); ok {
		t.Error("Alloc(-1) succeeded")
	}
}

func TestPoolInvariant(t *testing.T) {
	for _, tt := range []struct {
		name string
		free []int32
	}{{"twice", []int32{0, 0}}, {"never taken", []int32{1}}, {"no block", []int32{7}}, {"negative", []int32{-1}}} {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPool(2)
			p.Alloc(1)
			defer func() {
				if msg, _ := recover().(string); !strings.Contains(msg, "a block has one owner") {
					t.Errorf("panic %q does not name the invariant", msg)
				}
			}()
			p.Free(tt.free)
		})
	}
}

func TestPoolNeverHandsOutTwice(t *testing.T) {
	const seed, blocks = 3, 64
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	p, owner, held := NewPool(blocks), map[int32]bool{}, [][]int32{}
	for range 10000 {
		if len(held) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(held))
			for _, b := range held[i] {
				delete(owner, b)
			}
			p.Free(held[i])
			held = slices.Delete(held, i, i+1)
		} else if got, ok := p.Alloc(r.IntN(12)); ok {
			for _, b := range got {
				if owner[b] {
					t.Fatalf("block %d handed out twice", b)
				}
				owner[b] = true
			}
			held = append(held, got)
		}
		if p.FreeBlocks()+len(owner) != p.Total() || p.Total() != blocks {
			t.Fatalf("%d free + %d held of %d", p.FreeBlocks(), len(owner), p.Total())
		}
	}
}
