package cli

import "fmt"

// window is a part of a text that is computed as one sequence: what stands before every text, then tokens [from, to), of which
// [scored, to) are scored.
type window struct {
	from, scored, to int
	stride           int // in effect
}

// windows cuts n tokens, each window with lead more before them and at most size in all. Every token is scored once, but for the
// first of the text where nothing stands before it. The last window has as much of what precedes its tokens as the others.
func windows(lead, n, size, stride int) ([]window, error) {
	room := size - lead // tokens of a window
	most := room        // of which none was there before
	if lead == 0 {
		most-- // one must be, for the first to be scored
	}
	if stride == 0 {
		stride = most
	}
	first := 0
	if lead == 0 {
		first = 1
	}
	switch {
	case most < 1:
		return nil, fmt.Errorf("--ctx-size %d: must be more than the %d tokens that begin every window", size, lead)
	case stride > most:
		return nil, fmt.Errorf("--stride %d: must be at most %d, or tokens between two windows of %d positions would not be scored", stride, most, size)
	case n <= first:
		return nil, fmt.Errorf("has %d tokens: there is nothing to score", n)
	}
	var list []window
	for scored := first; scored < n; {
		to := min(scored+stride, n)
		if len(list) == 0 {
			to = min(room, n)
		}
		list = append(list, window{from: max(0, to-room), scored: scored, to: to, stride: stride})
		scored = to
	}
	return list, nil
}
