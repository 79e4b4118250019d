package token

// scanMax is the longest word, in bytes, whose merges are found by scanning; beyond it a heap is faster.
const scanMax = 48

// pair is two neighbouring token ids.
type pair struct{ left, right int32 }

// merge is what a pair becomes, and how early: lower ranks merge first.
type merge struct{ rank, id int32 }

// bpe holds the model of tokenizer.json. It is read-only after loading.
type bpe struct {
	byteIDs      [256]int32
	merges       map[pair]merge
	ignoreMerges bool             // a word that is in the vocabulary is not merged from its bytes
	words        map[string]int32 // the vocabulary by bytes; only with ignoreMerges
}

// appendWord appends the ids of one word: starting from bytes, the pair of lowest rank is merged, of equal ones the
// leftmost, until no neighbours merge.
func (m *bpe) appendWord(dst []int32, word string) []int32 {
	if m.ignoreMerges {
		if id, ok := m.words[word]; ok {
			return append(dst, id)
		}
	}
	if len(word) > scanMax {
		return m.appendByHeap(dst, word)
	}
	return m.appendByScan(dst, word)
}

func (m *bpe) appendByScan(dst []int32, word string) []int32 {
	if word == "" {
		return dst
	}
	var ids [scanMax]int32
	var next [scanMax]merge // next[i] is what ids[i], ids[i+1] become; rank −1: nothing
	n := len(word)
	for i := range n {
		ids[i] = m.byteIDs[word[i]]
	}
	look := func(i int) {
		next[i].rank = -1
		if i+1 < n {
			if mg, ok := m.merges[pair{ids[i], ids[i+1]}]; ok {
				next[i] = mg
			}
		}
	}
	for i := range n {
		look(i)
	}
	for n > 1 {
		best := -1
		for i := range n - 1 {
			if next[i].rank >= 0 && (best < 0 || next[i].rank < next[best].rank) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		ids[best] = next[best].id
		copy(ids[best+1:n-1], ids[best+2:n])
		copy(next[best+1:n-1], next[best+2:n])
		n--
		look(best)
		if best > 0 {
			look(best - 1)
		}
	}
	return append(dst, ids[:n]...)
}
