package cpu

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// marks counts how often each item ran.
type marks struct {
	ran   []atomic.Int32
	panic int // item that panics, -1 for none
	burn  int
	sink  atomic.Uint64
	own   int // items that the caller ran
}

func (m *marks) item(i, thread int) {
	if thread == 0 {
		m.own++
	}
	x := uint64(i)
	for range m.burn {
		x = x*6364136223846793005 + 1
	}
	m.sink.Add(x)
	m.ran[i].Add(1)
	if i == m.panic {
		panic(fmt.Sprintf("item %d", i))
	}
}

// TestPoolRunsEachItemOnce: whatever the number of threads and items, and however soon jobs follow each other.
func TestPoolRunsEachItemOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, threads := range []int{1, 2, 3, 8} {
		p := newPool(threads, nil)
		for range 3000 {
			m := &marks{ran: make([]atomic.Int32, 1+r.IntN(20)), panic: -1, burn: r.IntN(2000)}
			p.run(m, len(m.ran), r.IntN(2*worthWaking))
			for i := range m.ran {
				if n := m.ran[i].Load(); n != 1 {
					t.Fatalf("%d threads: item %d of %d ran %d times", threads, i, len(m.ran), n)
				}
			}
			if m.own > len(m.ran) || threads == 1 && m.own != len(m.ran) {
				t.Fatalf("%d threads: the caller ran %d of %d items", threads, m.own, len(m.ran))
			}
		}
		p.close()
	}
}

// TestPoolHelps: helpers that sleep are woken for a large job and take part in it.
func TestPoolHelps(t *testing.T) {
	p := newPool(2, nil)
	defer p.close()
	for p.asleep.Load() == 0 { // until the helper has given up looking
		look(func() bool { return p.asleep.Load() != 0 })
	}
	var turn atomic.Int32
	// Each item waits until another has begun, which takes two threads.
	p.run(meet{&turn}, 2, worthWaking)
	if turn.Load() != 2 {
		t.Errorf("%d items ran", turn.Load())
	}
}

type meet struct{ turn *atomic.Int32 }

func (m meet) item(int, int) {
	m.turn.Add(1)
	for m.turn.Load() < 2 {
	}
}

// TestPoolPanics: what an item panics with comes out of run, all other items have run, and the pool goes on.
func TestPoolPanics(t *testing.T) {
	for _, threads := range []int{1, 4} {
		p := newPool(threads, nil)
		for range 200 {
			m := &marks{ran: make([]atomic.Int32, 9), panic: 5, burn: 500}
			got := func() (v any) {
				defer func() { v = recover() }()
				p.run(m, len(m.ran), worthWaking)
				return nil
			}()
			if got != "item 5" {
				t.Fatalf("run panicked with %v", got)
			}
		}
		p.close()
	}
}

// TestPoolAllocatesNothing in a steady state.
func TestPoolAllocatesNothing(t *testing.T) {
	p := newPool(2, nil)
	defer p.close()
	m := &marks{ran: make([]atomic.Int32, 8), panic: -1, burn: 100}
	if n := testing.AllocsPerRun(200, func() { p.run(m, len(m.ran), worthWaking) }); n != 0 {
		t.Errorf("%v allocations per job", n)
	}
}

func BenchmarkPool(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			p := newPool(threads, nil)
			defer p.close()
			m := &marks{ran: make([]atomic.Int32, 8), panic: -1, burn: 1000}
			for b.Loop() {
				p.run(m, len(m.ran), worthWaking)
			}
		})
	}
}
