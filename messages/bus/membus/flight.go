package membus

import "time"

// flight is a message that is under way to a bus.
type flight struct{ timer *time.Timer }

// expectLocked makes a message arrive after delay.
func (b *Bus) expectLocked(delay time.Duration, arrive func()) {
	if b.ending || b.isolated {
		return
	}
	f := &flight{}
	b.flights[f] = struct{}{}
	b.working++
	f.timer = time.AfterFunc(delay, func() {
		b.net.mu.Lock()
		defer b.net.mu.Unlock()
		if _, ok := b.flights[f]; ok { // not cancelled while this waited for the lock
			delete(b.flights, f)
			b.arriveLocked(arrive)
		}
		b.restLocked()
	})
}

// arriveLocked delivers a message to the bus.
func (b *Bus) arriveLocked(arrive func()) {
	if !b.ending && !b.isolated {
		arrive()
	}
}

// cancelFlightsLocked loses all that is under way to the bus.
func (b *Bus) cancelFlightsLocked() {
	for f := range b.flights {
		delete(b.flights, f)
		if f.timer.Stop() {
			b.restLocked()
		}
	}
}

// restLocked takes note that a goroutine of the bus, or a flight that would have been one, has ended.
func (b *Bus) restLocked() {
	b.working--
	if b.ending && b.working == 0 {
		b.endLocked()
	}
}
