package expertgroup

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/moerack/moerack/hal"
)

// gathering is where the ranks of this node wait for a communicator's members. The actor fills it.
type gathering struct {
	group hal.Group     // Rank is not set
	done  chan struct{} // closed when all have come, or with err
	mu    sync.Mutex    // guards the fields below
	have  [][]byte      // by rank in the communicator // (size)
	came  []bool        // (size)
	left  int
	err   error
}

func newGathering(g hal.Group) *gathering {
	return &gathering{group: g, done: make(chan struct{}), have: make([][]byte, g.Size), came: make([]bool, g.Size), left: g.Size}
}

// add enters a member's endpoint; each member comes once.
func (g *gathering) add(rank int, data []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.have[rank], g.came[rank] = data, true
	if g.left--; g.left == 0 && g.err == nil {
		close(g.done)
	}
}

// fail lets everyone go who waits; one that is complete stays so.
func (g *gathering) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left > 0 && g.err == nil {
		g.err = err
		close(g.done)
	}
}

// mostNamed is how many absent ranks an error lists.
const mostNamed = 8

// absent names the members that were not heard of.
func (g *gathering) absent() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for i, came := range g.came {
		if !came {
			names = append(names, g.group.Names[i])
		}
	}
	if n := len(names); n > mostNamed {
		names = append(names[:mostNamed], fmt.Sprintf("%d more", n-mostNamed))
	}
	return strings.Join(names, ", ")
}

// published says how a rank of this node can be reached.
type published struct {
	kind string
	rank int // in the communicator
	data []byte
}

// rendezvous is hal.Rendezvous for one rank of this node and one communicator. The rank's device thread calls it.
type rendezvous struct {
	gathering *gathering
	kind      string
	rank      int                // in the communicator
	send      func(m *published) // to the actor
}

// Publish hands the endpoint to the actor and returns. The endpoint is the caller's again.
func (r *rendezvous) Publish(ctx context.Context, endpoint []byte) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("publishing the endpoint of %s: %w", r.gathering.group.Names[r.rank], err)
	}
	r.send(&published{kind: r.kind, rank: r.rank, data: append([]byte{}, endpoint...)})
	return nil
}

// Collect waits until all members have published, the epoch is over, or ctx ends.
func (r *rendezvous) Collect(ctx context.Context) ([][]byte, error) {
	g := r.gathering
	select {
	case <-g.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("nothing heard of %s, see what is wrong there: %w", g.absent(), context.Cause(ctx))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return nil, &hal.Error{Op: "Join", Device: g.group.Names[r.rank], Class: hal.Aborted, Detail: "the group was given up while it gathered", Err: g.err}
	}
	return append([][]byte{}, g.have...), nil
}
