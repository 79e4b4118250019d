package sample

// ranking hands out token ids from the best logit down, ties by the lower id. It is a binary heap: filling it costs one
// pass, and each id taken costs the height, so taking few of many is cheap. Its memory is kept from row to row.
type ranking struct {
	logits []float32
	heap   []int32
}

// fill puts all ids of logits into the heap.
func (r *ranking) fill(logits []float32) {
	r.logits = logits
	if cap(r.heap) < len(logits) {
		r.heap = make([]int32, len(logits))
	}
	r.heap = r.heap[:len(logits)]
	for i := range r.heap {
		r.heap[i] = int32(i)
	}
	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.down(i)
	}
}

// next takes the best id left. The heap must not be empty.
func (r *ranking) next() int32 {
	best := r.heap[0]
	last := len(r.heap) - 1
	r.heap[0] = r.heap[last]
	r.heap = r.heap[:last]
	r.down(0)
	return best
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
