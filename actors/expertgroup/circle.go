package expertgroup

import (
	"fmt"
	"slices"
)

// circle is a communicator in the making, as far as this node knows.
type circle struct {
	kind     string      // "ep", "tp0", …: unique in the group
	from, to int         // its members are the global ranks [from, to), in this order
	local    map[int]int // members that are here: number in the communicator → global rank
	have     []*[]byte   // endpoints; nil: not heard of // (members)
	missing  int
}

// abroad says whether there are members on other nodes.
func (o *circle) abroad() bool { return len(o.local) < len(o.have) }

// own returns the numbers in the communicator of members here that have published, ascending.
func (o *circle) own() []int {
	var out []int
	for i := range o.local {
		if o.have[i] != nil {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

const epKind = "ep"

func tpKind(engine int) string { return fmt.Sprintf("tp%d", engine) }

func newCircle(kind string, from, to int, ranks []int) *circle {
	c := &circle{kind: kind, from: from, to: to, local: map[int]int{}, have: make([]*[]byte, to-from), missing: to - from}
	for _, r := range ranks {
		if r >= from && r < to {
			c.local[r-from] = r
		}
	}
	return c
}

// take enters an endpoint; one that is known already stays.
func (o *circle) take(rank int, data []byte) []effect {
	if o.have[rank] != nil {
		return nil
	}
	o.have[rank] = &data
	o.missing--
	return []effect{heard{o.kind, rank, data}}
}
