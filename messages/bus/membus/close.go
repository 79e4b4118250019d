package membus

import (
	"context"
	"fmt"
	"slices"
)

// Close implements bus.Bus. What is still under way to the bus is lost; what it sent arrives.
func (b *Bus) Close(ctx context.Context) error {
	b.net.mu.Lock()
	if !b.ending {
		b.ending = true
		close(b.closing)
		b.cancelFlightsLocked()
		for _, s := range b.net.subs {
			if s.bus == b {
				s.endLocked()
			}
		}
		if b.working == 0 {
			b.endLocked()
		}
	}
	b.net.mu.Unlock()
	select {
	case <-b.closed:
		return nil
	case <-ctx.Done():
	}
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	for _, s := range b.net.subs {
		if s.bus == b {
			s.waiting = nil
		}
	}
	b.leaveLocked()
	return fmt.Errorf("membus: close: handlers have not returned: %w", context.Cause(ctx))
}

// endLocked takes note that Close has ended, once.
func (b *Bus) endLocked() {
	b.leaveLocked()
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
}

// leaveLocked lets nothing more pass.
func (b *Bus) leaveLocked() {
	b.ended = true
	b.net.subs = slices.DeleteFunc(b.net.subs, func(s *subscription) bool { return s.bus == b })
}
