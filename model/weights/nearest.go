package weights

import (
	"fmt"
	"slices"
)

// nearest suggests up to three names that differ from the given one in one place
// only, as far as such exist: typed names and those of other layouts differ so.
func (c *Checkpoint) nearest(name string) string {
	type candidate struct {
		name   string
		common int // bytes of prefix and suffix that are equal
	}
	var best []candidate
	for other := range c.tensors {
		common := commonEnds(name, other)
		if common*3 >= max(len(name), len(other))*2 {
			best = append(best, candidate{other, common})
		}
	}
	slices.SortFunc(best, func(a, b candidate) int {
		// Fewer differing bytes first.
		if d := (len(a.name) - 2*a.common) - (len(b.name) - 2*b.common); d != 0 {
			return d
		}
		if a.name < b.name {
			return -1
		}
		return 1
	})
	if len(best) == 0 {
		return fmt.Sprintf(" (no similar name among %d tensors)", len(c.tensors))
	}
	text := "; nearest:"
	for i, b := range best[:min(3, len(best))] {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %q", b.name)
	}
	return text
}

// commonEnds counts equal bytes from the front and then from the back.
func commonEnds(a, b string) int {
	shorter := min(len(a), len(b))
	front := 0
	for front < shorter && a[front] == b[front] {
		front++
	}
	back := 0
	for back < shorter-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	return front + back
}
