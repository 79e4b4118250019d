package sample

import (
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
)

// ranking hands out token ids from the best logit down, ties by the lower id. It looks at as few logits as it can: the n-th largest of
// the blocks' maxima is a bound that n logits at least reach, and only blocks whose maximum reaches it can hold them. These go into a
// binary heap; when it is empty, a lower bound brings more. Its memory is kept from row to row.
type ranking struct {
	logits, maxima []float32
	sorted         []float32 // maxima, smallest first
	wanted         int       // blocks whose maxima reach the bound; more if there are ties
	begun          bool
	last           int32 // handed out, if begun
	heap           []int32
}

// firstWanted is how many blocks are looked at first, about.
const firstWanted = 32

// fill begins with new logits and the maxima of their blocks, which both stay as they are while ids are taken.
func (r *ranking) fill(logits, maxima []float32) {
	r.logits, r.maxima, r.wanted, r.begun, r.heap = logits, maxima, 0, false, r.heap[:0]
}

// next takes the best id left. There is one as long as no more are taken than there are logits without NaN; then the last one comes again.
func (r *ranking) next() int32 {
	for len(r.heap) == 0 && r.wanted < len(r.maxima) {
		r.more()
	}
	if len(r.heap) == 0 {
		return r.last
	}
	best := r.heap[0]
	last := len(r.heap) - 1
	r.heap[0] = r.heap[last]
	r.heap = r.heap[:last]
	r.down(0)
	r.last, r.begun = best, true
	return best
}

// more lowers the bound and puts the ids that reach it, but for those handed out, into the heap, which is empty.
func (r *ranking) more() {
	if r.wanted == 0 {
		r.sorted = append(r.sorted[:0], r.maxima...)
		slices.Sort(r.sorted)
	}
	r.wanted = min(max(8*r.wanted, firstWanted), len(r.maxima))
	bound := r.sorted[len(r.sorted)-r.wanted]
	if r.wanted == len(r.maxima) {
		bound = float32(math.Inf(-1))
	}
	for b, most := range r.maxima {
		if most < bound {
			continue
		}
		for i, l := range block(r.logits, b) {
			if id := int32(b*hal.ReduceBlock + i); l >= bound && (!r.begun || r.better(r.last, id)) {
				r.heap = append(r.heap, id)
			}
		}
	}
	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.down(i)
	}
}

// better orders ids: the higher logit, then the lower id.
func (r *ranking) better(a, b int32) bool {
	la, lb := r.logits[a], r.logits[b]
	return la > lb || la == lb && a < b
}

func (r *ranking) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(r.heap) {
			return
		}
		if child+1 < len(r.heap) && r.better(r.heap[child+1], r.heap[child]) {
			child++
		}
		if !r.better(r.heap[child], r.heap[i]) {
			return
		}
		r.heap[i], r.heap[child] = r.heap[child], r.heap[i]
		i = child
	}
}
