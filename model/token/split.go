package token

import "fmt"

// span is a part of a text, in bytes, that a pattern matched or that lies between matches.
type span struct {
	start, end int
	match      bool
}

// finder calls found with the start and end, in bytes, of each match in text, from left to right.
type finder func(text string, found func(start, end int))

// splitBehaviour says what becomes of the matches of a Split, as tokenizer.json names it.
type splitBehaviour string

const (
	isolated           splitBehaviour = "Isolated"           // a piece of its own
	removed            splitBehaviour = "Removed"            // dropped
	mergedWithPrevious splitBehaviour = "MergedWithPrevious" // the end of the piece before
	mergedWithNext     splitBehaviour = "MergedWithNext"     // the start of the piece after
	contiguous         splitBehaviour = "Contiguous"         // one piece together with its neighbours of the same kind
)

// check refuses a behaviour this package does not know.
func (b splitBehaviour) check() error {
	switch b {
	case isolated, removed, mergedWithPrevious, mergedWithNext, contiguous:
		return nil
	}
	return fmt.Errorf("behavior %q is not supported (Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous are)", string(b))
}

// step is one stage of the pre-tokenizer. It works inside each piece that the stage before made and emits the pieces it
// makes of it, left to right, none empty.
type step func(piece string, emit func(string))

// splitStep cuts pieces at the matches of find; text that nothing matches stays together. With invert, matches count as
// the text between and the other way round.
func splitStep(find finder, behaviour splitBehaviour, invert bool) step {
	if behaviour == isolated {
		return isolateStep(find)
	}
	return func(piece string, emit func(string)) {
		spans := findSpans(find, piece, invert)
		for _, s := range arrange(spans, behaviour) {
			if s.start < s.end {
				emit(piece[s.start:s.end])
			}
		}
	}
}

// isolateStep is splitStep for Isolated, where invert changes nothing and no list is needed.
func isolateStep(find finder) step {
	return func(piece string, emit func(string)) {
		done := 0
		find(piece, func(start, end int) {
			if done < start {
				emit(piece[done:start])
			}
			if start < end {
				emit(piece[start:end])
			}
			done = end
		})
		if done < len(piece) {
			emit(piece[done:])
		}
	}
}

func findSpans(find finder, piece string, invert bool) []span {
	var spans []span
	done := 0
	find(piece, func(start, end int) {
		if done < start {
			spans = append(spans, span{done, start, invert})
		}
		spans = append(spans, span{start, end, !invert})
		done = end
	})
	if done < len(piece) {
		spans = append(spans, span{done, len(piece), invert})
	}
	return spans
}

// arrange joins or drops spans as the behaviour says. In a row of matches only the first joins its neighbour.
func arrange(spans []span, behaviour splitBehaviour) []span {
	var out []span
	previous := false // whether the span before was a match
	switch behaviour {
	case isolated:
		return spans
	case removed:
		for _, s := range spans {
			if !s.match {
				out = append(out, s)
			}
		}
	case contiguous:
		for _, s := range spans {
			if len(out) > 0 && s.match == previous {
				out[len(out)-1].end = s.end
			} else {
				out = append(out, s)
			}
			previous = s.match
		}
	case mergedWithPrevious:
		for _, s := range spans {
			if len(out) > 0 && s.match && !previous {
				out[len(out)-1].end = s.end
			} else {
				out = append(out, s)
			}
			previous = s.match
		}
	case mergedWithNext:
		for i := range spans {
			s := &spans[i]
			followed := i+1 < len(spans) && !spans[i+1].match
			if s.match && followed {
				spans[i+1].start = s.start
			} else {
				out = append(out, *s)
			}
		}
	}
	return out
}
