package actortest

import (
	"context"
	"fmt"
	"sync"

	"github.com/moerack/moerack/hal"
)

// Rack is where fake ranks of a process meet. The zero value is ready; it may be used by all ranks at once.
type Rack struct {
	mu     sync.Mutex // guards groups
	groups map[string]*meeting
}

// Join makes a rank a member of a group, as a device does: it publishes an endpoint and collects those of the others.
func (r *Rack) Join(ctx context.Context, g hal.Group, at hal.Rendezvous) (hal.Comm, error) {
	if err := at.Publish(ctx, fmt.Appendf(nil, "%d", g.Rank)); err != nil {
		return nil, err
	}
	ends, err := at.Collect(ctx)
	if err != nil {
		return nil, err
	}
	if len(ends) != g.Size {
		return nil, fmt.Errorf("actortest: group %s: %d endpoints of %d", g.Name, len(ends), g.Size)
	}
	for i, end := range ends {
		if string(end) != fmt.Sprint(i) {
			return nil, fmt.Errorf("actortest: group %s: member %d published %q", g.Name, i, end)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups == nil {
		r.groups = map[string]*meeting{}
	}
	name := fmt.Sprintf("%s/%d", g.Name, g.Epoch)
	if r.groups[name] == nil {
		r.groups[name] = &meeting{aborted: make(chan struct{})}
	}
	return &Comm{group: g, at: r.groups[name]}, nil
}

// meeting is a group whose members come together round by round.
type meeting struct {
	mu      sync.Mutex // guards the fields below
	round   *round
	cause   error
	aborted chan struct{} // closed by the first abort
}

// round is one coming together.
type round struct {
	what   string // that all members must bring
	came   []bool
	given  [][]int32
	missed int
	fault  error         // members met for different things
	full   chan struct{} // closed when all have come
}

// Comm is a rank's part in a group. It moves no tensors: a model meets the others with Meet.
type Comm struct {
	hal.Comm // none: a call of what is not here panics

	group hal.Group
	at    *meeting
}

// Group returns what the communicator was made for.
func (c *Comm) Group() hal.Group { return c.group }

// Meet waits until all members have come, each with the same what, and returns what they gave, by rank. It ends early with ctx or
// Abort; then the error names who has not come.
func (c *Comm) Meet(ctx context.Context, what string, give []int32) ([][]int32, error) {
	r, err := c.come(what, give)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.full:
		return r.given, r.fault
	case <-c.at.aborted:
		return nil, c.abortError(what, r)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Comm) come(what string, give []int32) (*round, error) {
	m := c.at
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cause != nil {
		return nil, &hal.Error{Op: what, Device: "fake", Class: hal.Aborted, Detail: "communicator of " + c.group.Name, Err: m.cause}
	}
	if m.round == nil {
		m.round = &round{what: what, came: make([]bool, c.group.Size), given: make([][]int32, c.group.Size), missed: c.group.Size, full: make(chan struct{})}
	}
	r := m.round
	if r.what != what {
		r.fault = fmt.Errorf("actortest: group %s: rank %d comes for %q, others for %q", c.group.Name, c.group.Rank, what, r.what)
	}
	r.came[c.group.Rank] = true
	r.given[c.group.Rank] = append([]int32(nil), give...)
	if r.missed--; r.missed == 0 {
		m.round = nil
		close(r.full)
	}
	return r, nil
}

func (c *Comm) abortError(what string, r *round) error {
	c.at.mu.Lock()
	defer c.at.mu.Unlock()
	var absent []int
	for i, came := range r.came {
		if !came {
			absent = append(absent, i)
		}
	}
	return &hal.Error{Op: what, Device: "fake", Class: hal.Aborted, Detail: fmt.Sprintf("members %v of %s had not come", absent, c.group.Name), Err: c.at.cause}
}

// Abort ends every meeting that waits or comes later with class Aborted.
func (c *Comm) Abort(cause error) {
	c.at.mu.Lock()
	defer c.at.mu.Unlock()
	if c.at.cause == nil {
		c.at.cause = cause
		close(c.at.aborted)
	}
}

// Close aborts the others, who would wait for this member.
func (c *Comm) Close() error {
	c.Abort(fmt.Errorf("member %d of %s has closed", c.group.Rank, c.group.Name))
	return nil
}
