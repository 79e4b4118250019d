package cli

import "time"

// decodeWindow is the part of a run that is decoding and nothing else: from when the last sequence has its first token until each has
// gen tokens more. All have a row in each of its steps, so it is gen steps long.
type decodeWindow struct {
	gen         int
	tokens      []int // of each sequence, so far
	goal        []int // of each sequence, once the window is open
	waiting     int   // sequences without a token
	short       int   // sequences below their goal, once the window is open
	first, last time.Time
}

func newDecodeWindow(sequences, gen int) *decodeWindow {
	return &decodeWindow{gen: gen, tokens: make([]int, sequences), waiting: sequences}
}

// open reports whether all sequences have their first token.
func (w *decodeWindow) open() bool { return w.waiting == 0 }

// over reports whether all sequences have their tokens after that.
func (w *decodeWindow) over() bool { return w.open() && w.short == 0 }

// take adds tokens that came before the window was over.
func (w *decodeWindow) take(s sighting) {
	had := w.tokens[s.sequence]
	w.tokens[s.sequence] += s.tokens
	has := w.tokens[s.sequence]
	switch {
	case has == had:
	case w.open():
		if had < w.goal[s.sequence] && has >= w.goal[s.sequence] {
			w.short--
			w.last = s.at
		}
	case had == 0:
		if w.waiting--; w.waiting > 0 {
			return
		}
		w.first, w.short = s.at, len(w.tokens)
		for _, n := range w.tokens {
			w.goal = append(w.goal, n+w.gen)
		}
	}
}
