package kv

import "fmt"

// Pool hands out the numbers of free blocks. The order depends on the calls alone: a new pool gives 0, 1, 2, …, later the
// block that was freed last comes first. It belongs to one goroutine.
type Pool struct {
	free []int32 // a stack, its top at the end
	used []bool  // by block number
}

// NewPool makes a pool of blocks numbered from 0, all free.
func NewPool(blocks int) *Pool {
	p := &Pool{free: make([]int32, blocks), used: make([]bool, blocks)}
	for i := range p.free {
		p.free[i] = int32(blocks - 1 - i)
	}
	return p
}

// Alloc takes n blocks, or none and false if fewer are free. The slice is the caller's.
func (p *Pool) Alloc(n int) ([]int32, bool) {
	if n < 0 || n > len(p.free) {
		return nil, false
	}
	out := make([]int32, n)
	for i := range out {
		top := len(p.free) - 1
		out[i] = p.free[top]
		p.free = p.free[:top]
		p.used[out[i]] = true
	}
	return out, true
}

// Free gives blocks back, the first of them on top, so that an Alloc of as many returns them in the same order. It does not
// keep the slice. A block that is not in use breaks the invariant "a block has one owner", which panics.
func (p *Pool) Free(blocks []int32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		if b < 0 || int(b) >= len(p.used) || !p.used[b] {
			panic(fmt.Sprintf("kv: invariant \"a block has one owner\" broken: block %d of %d freed while not in use", b, len(p.used)))
		}
		p.used[b] = false
		p.free = append(p.free, b)
	}
}

// Total returns the number of blocks.
func (p *Pool) Total() int { return len(p.used) }

// FreeBlocks returns the number of free blocks.
func (p *Pool) FreeBlocks() int { return len(p.free) }
