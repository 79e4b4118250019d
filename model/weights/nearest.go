package weights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mostNearest is how many names an error suggests.
const mostNearest = 3

// missingError says that a name is not there. It looks for the nearest names when
// it is read: a checkpoint of another model lacks every name, a search goes over
// all there are, and few of the errors are ever printed.
type missingError struct {
	c     *Checkpoint
	name  string
	shape []int // nil: any
}

func (e *missingError) Error() string {
	text := fmt.Sprintf("weights: %s: tensor %q%s is missing", e.c.dir, e.name, shapeText(e.shape))
	near := e.c.nearest(e.name)
	if len(near) == 0 {
		return fmt.Sprintf("%s (no similar name among %d tensors)", text, len(e.c.tensors))
	}
	for i, name := range near {
		near[i] = fmt.Sprintf("%q", name)
	}
	return text + "; nearest: " + strings.Join(near, ", ")
}

// nearest gives up to mostNearest names that differ from the given one in one place
// only, the fewest differing bytes first: typed names and those of other layouts
// differ so.
func (c *Checkpoint) nearest(name string) []string {
	type candidate struct {
		name   string
		differ int // bytes of both names that are not in their equal ends
	}
	best := make([]candidate, 0, mostNearest+1)
	for other := range c.tensors {
		common := commonEnds(name, other)
		if common*3 < max(len(name), len(other))*2 {
			continue
		}
		x := candidate{other, len(name) + len(other) - 2*common}
		at, _ := slices.BinarySearchFunc(best, x, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.differ, b.differ), cmp.Compare(a.name, b.name))
		})
		if at < mostNearest {
			best = slices.Insert(best, at, x)
			best = best[:min(len(best), mostNearest)]
		}
	}
	names := make([]string, len(best))
	for i, b := range best {
		names[i] = b.name
	}
	return names
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
