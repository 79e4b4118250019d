package haltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/moerack/moerack/hal"
)

// MeetingPoint is a rendezvous in memory for one group and epoch, for tests whose ranks are goroutines.
type MeetingPoint struct {
	mu        sync.Mutex // guards endpoints and missing
	endpoints [][]byte
	missing   int
	all       chan struct{} // closed when nobody is missing
}

// NewMeetingPoint returns the place where size ranks meet once.
func NewMeetingPoint(size int) *MeetingPoint {
	return &MeetingPoint{endpoints: make([][]byte, size), missing: size, all: make(chan struct{})}
}

// Door returns what one rank sees of the meeting point.
func (p *MeetingPoint) Door(rank int) hal.Rendezvous { return door{p, rank} }

type door struct {
	p    *MeetingPoint
	rank int
}

// Publish stores a copy of the endpoint.
func (d door) Publish(_ context.Context, endpoint []byte) error {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	if d.p.endpoints[d.rank] != nil {
		return fmt.Errorf("rank %d published twice", d.rank)
	}
	d.p.endpoints[d.rank] = append([]byte{}, endpoint...)
	if d.p.missing--; d.p.missing == 0 {
		close(d.p.all)
	}
	return nil
}

// Collect waits for all; when ctx ends first, it names the absent by their ranks.
func (d door) Collect(ctx context.Context) ([][]byte, error) {
	select {
	case <-d.p.all:
		return slices.Clone(d.p.endpoints), nil
	case <-ctx.Done():
		d.p.mu.Lock()
		defer d.p.mu.Unlock()
		var absent []string
		for r, e := range d.p.endpoints {
			if e == nil {
				absent = append(absent, fmt.Sprintf("rank %d", r))
			}
		}
		return nil, fmt.Errorf("absent: %s: %w", strings.Join(absent, ", "), ctx.Err())
	}
}
