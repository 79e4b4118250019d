package membus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/moerack/moerack/messages/bus"
)

// MaxData is the most bytes of a message, as many as a NATS server takes by default.
const MaxData = 1 << 20

// Bus is one participant of a network.
type Bus struct {
	net *Network

	// Guarded by net.mu.
	chance   *rand.Rand
	isolated bool
	counts   bus.Counts
	requests uint64 // number of the last one
	replies  map[uint64]chan<- []byte
	flights  map[*flight]struct{} // on their way to this bus
	working  int                  // goroutines of subscriptions, and flights that are landing
	ending   bool                 // Close began
	ended    bool                 // nothing more passes

	closing chan struct{} // closed when Close begins
	closed  chan struct{} // closed when ending and nothing works any more
}

var _ bus.Bus = (*Bus)(nil)

// replyTo is where the answer to a request goes.
type replyTo struct {
	bus    *Bus
	number uint64
}

// Publish implements bus.Bus.
func (b *Bus) Publish(subject string, data []byte) error {
	if err := check(subject, data); err != nil {
		return fmt.Errorf("membus: publish: %w", err)
	}
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	if b.ended {
		return fmt.Errorf("membus: publish on %s: %w", subject, bus.ErrClosed)
	}
	b.counts.Published++
	b.net.publishLocked(b, subject, data, nil)
	return nil
}

// Subscribe implements bus.Bus.
func (b *Bus) Subscribe(subject string, h bus.Handler) (bus.Subscription, error) {
	if err := check(subject, nil); err != nil {
		return nil, fmt.Errorf("membus: subscribe: %w", err)
	}
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	if b.ending {
		return nil, fmt.Errorf("membus: subscribe to %s: %w", subject, bus.ErrClosed)
	}
	s := &subscription{bus: b, subject: subject, handler: h, more: make(chan struct{}, 1)}
	b.net.subs = append(b.net.subs, s)
	b.working++
	go s.run() // ends when s.over, at the latest by Close
	return s, nil
}

// Request implements bus.Bus.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := check(subject, data); err != nil {
		return nil, fmt.Errorf("membus: request: %w", err)
	}
	answer := make(chan []byte, 1)
	b.net.mu.Lock()
	if b.ending {
		b.net.mu.Unlock()
		return nil, fmt.Errorf("membus: request on %s: %w", subject, bus.ErrClosed)
	}
	b.requests++
	number := b.requests
	b.replies[number] = answer
	b.counts.Published++
	found := b.net.publishLocked(b, subject, data, &replyTo{b, number})
	deaf := b.isolated // the network cannot say so
	b.net.mu.Unlock()
	defer func() {
		b.net.mu.Lock()
		delete(b.replies, number)
		b.net.mu.Unlock()
	}()
	if found == 0 && !deaf {
		return nil, fmt.Errorf("membus: request on %s: %w", subject, bus.ErrNoResponders)
	}
	select {
	case a := <-answer:
		return a, nil
	case <-b.closing:
		return nil, fmt.Errorf("membus: request on %s: %w", subject, bus.ErrClosed)
	case <-ctx.Done():
		return nil, fmt.Errorf("membus: request on %s: %w", subject, context.Cause(ctx))
	}
}

// respond sends an answer from b.
func (b *Bus) respond(to *replyTo, subject string, data []byte) error {
	if err := check(subject, data); err != nil {
		return fmt.Errorf("membus: respond: %w", err)
	}
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	if b.ended {
		return fmt.Errorf("membus: respond on %s: %w", subject, bus.ErrClosed)
	}
	b.counts.Published++
	data = slices.Clone(data)
	b.net.sendLocked(b, to.bus, func() {
		if answer := to.bus.replies[to.number]; answer != nil {
			delete(to.bus.replies, to.number) // the first counts
			to.bus.counts.Received++
			answer <- data
		}
	})
	return nil
}

// Connected implements bus.Bus: an isolated bus is not.
func (b *Bus) Connected() bool {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	return !b.ended && !b.isolated
}

// Kind implements bus.Bus.
func (b *Bus) Kind() bus.Kind { return bus.Memory }

// Counts implements bus.Bus.
func (b *Bus) Counts() bus.Counts {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	return b.counts
}

// Isolate cuts the bus off from all, itself included: what it sends and what is sent to it is lost until Rejoin, as is what is
// under way to it at that time.
func (b *Bus) Isolate() {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	b.isolated = true
	b.cancelFlightsLocked()
}

// Rejoin ends what Isolate began.
func (b *Bus) Rejoin() {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	b.isolated = false
}

// check refuses what no transport takes.
func check(subject string, data []byte) error {
	if err := bus.CheckSubject(subject); err != nil {
		return err
	}
	if len(data) > MaxData {
		return fmt.Errorf("%s: %w: %d bytes, the limit is %d", subject, bus.ErrTooLarge, len(data), MaxData)
	}
	return nil
}
