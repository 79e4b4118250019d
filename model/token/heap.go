package token

import "container/heap"

// symbol is a node of the doubly linked list of a word's tokens; prev and next are −1 at the ends, id is −1 once merged away.
type symbol struct{ id, prev, next int32 }

// candidate is a merge that was possible when it was pushed; it is stale if the ids at pos have changed since.
type candidate struct {
	pos  int32
	pair pair
	merge
}

type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].pos < c[j].pos
}
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// appendByHeap is appendByScan in O(n log n), for words of any length.
func (m *bpe) appendByHeap(dst []int32, word string) []int32 {
	syms := make([]symbol, len(word))
	for i := range len(word) {
		syms[i] = symbol{m.byteIDs[word[i]], int32(i - 1), int32(i + 1)}
	}
	syms[len(syms)-1].next = -1

	var queue candidates
	look := func(pos int32) (candidate, bool) {
		if pos < 0 || syms[pos].next < 0 {
			return candidate{}, false
		}
		p := pair{syms[pos].id, syms[syms[pos].next].id}
		mg, ok := m.merges[p]
		return candidate{pos, p, mg}, ok
	}
	for i := range syms {
		if c, ok := look(int32(i)); ok {
			queue = append(queue, c)
		}
	}
	heap.Init(&queue)
	for queue.Len() > 0 {
		top := heap.Pop(&queue).(candidate)
		left := &syms[top.pos]
		if left.id != top.pair.left || left.next < 0 || syms[left.next].id != top.pair.right {
			continue
		}
		right := &syms[left.next]
		left.id, left.next = top.id, right.next
		right.id = -1
		if left.next >= 0 {
			syms[left.next].prev = top.pos
		}
		for _, pos := range [2]int32{left.prev, top.pos} {
			if c, ok := look(pos); ok {
				heap.Push(&queue, c)
			}
		}
	}
	for i := int32(0); i >= 0; i = syms[i].next {
		dst = append(dst, syms[i].id)
	}
	return dst
}
