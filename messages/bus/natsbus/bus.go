package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/moerack/moerack/messages/bus"
)

// Bus is one connection to NATS.
type Bus struct {
	kind   bus.Kind
	log    *slog.Logger
	wait   time.Duration // for the server to know a subscription
	dialer *dialer
	conn   *nats.Conn
	own    *Server // ended with the bus; nil: not its own
	outage outage

	published, received atomic.Uint64

	closing <-chan struct{}                   // closed when Close begins
	begin   func()                            // closes it
	after   func(f func()) (stop func() bool) // calls f when it is closed
	gone    chan struct{}                     // closed when the connection is
	ended   chan struct{}                     // closed when Close has ended

	mu     sync.Mutex // guards ending, and that no subscription is made once it is set
	ending bool       // Close began
}

func newBus(o Options, kind bus.Kind, d *dialer) *Bus {
	life, end := context.WithCancel(context.Background())
	return &Bus{
		kind: kind, log: o.Logger, wait: o.Wait, dialer: d, outage: outage{log: o.Logger},
		closing: life.Done(), begin: end, after: func(f func()) func() bool { return context.AfterFunc(life, f) },
		gone: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Publish implements bus.Bus. While there is no connection, what is published is lost.
func (b *Bus) Publish(subject string, data []byte) error {
	if err := b.check(subject, data); err != nil {
		return fmt.Errorf("natsbus: publish: %w", err)
	}
	return b.send("publish on", subject, data)
}

// send hands a message to NATS.
func (b *Bus) send(what, subject string, data []byte) error {
	var err error
	if !b.outage.on() { // else the library may hold its lock until an attempt to connect is over
		err = b.conn.Publish(subject, data)
	}
	switch {
	case err == nil || offline(err):
		b.published.Add(1)
		return nil
	default:
		return fmt.Errorf("natsbus: %s %s: %w", what, subject, translate(err))
	}
}

// Subscribe implements bus.Bus.
func (b *Bus) Subscribe(subject string, h bus.Handler) (bus.Subscription, error) {
	if err := b.check(subject, nil); err != nil {
		return nil, fmt.Errorf("natsbus: subscribe: %w", err)
	}
	sub, err := b.subscribe(subject, h)
	if err != nil {
		return nil, fmt.Errorf("natsbus: subscribe to %s: %w", subject, err)
	}
	// The server knows it when it has answered.
	if err := b.conn.FlushTimeout(b.wait); err != nil {
		b.log.Warn("subscription waits for the bus to be connected", "subject", subject, "error", err)
	}
	return &subscription{sub: sub, bus: b}, nil
}

func (b *Bus) subscribe(subject string, h bus.Handler) (*nats.Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ending {
		return nil, bus.ErrClosed
	}
	sub, err := b.conn.Subscribe(subject, func(m *nats.Msg) {
		b.received.Add(1)
		var respond func(data []byte) error
		if to := m.Reply; to != "" {
			respond = func(data []byte) error { return b.respond(subject, to, data) }
		}
		h(bus.NewMessage(subject, m.Data, respond))
	})
	return sub, translate(err)
}

// respond answers a request on subject.
func (b *Bus) respond(subject, to string, data []byte) error {
	if err := b.fits(subject, data); err != nil {
		return fmt.Errorf("natsbus: respond: %w", err)
	}
	return b.send("respond on", to, data)
}

// Request implements bus.Bus. While there is no connection, the request is lost.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := b.check(subject, data); err != nil {
		return nil, fmt.Errorf("natsbus: request: %w", err)
	}
	answer, err := b.request(ctx, subject, data)
	if err != nil {
		return nil, fmt.Errorf("natsbus: request on %s: %w", subject, err)
	}
	b.received.Add(1)
	return answer, nil
}

func (b *Bus) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	b.mu.Lock()
	ending := b.ending
	b.mu.Unlock()
	if ending {
		return nil, bus.ErrClosed
	}
	defer b.after(func() { end(bus.ErrClosed) })()
	b.published.Add(1)
	if b.outage.on() {
		<-waiting.Done()
		return nil, context.Cause(waiting)
	}
	m, err := b.conn.RequestWithContext(waiting, subject, data)
	switch {
	case err == nil:
		return m.Data, nil
	case offline(err): // lost, which the sender cannot know
		<-waiting.Done()
		return nil, context.Cause(waiting)
	case waiting.Err() != nil:
		return nil, context.Cause(waiting)
	case errors.Is(err, nats.ErrNoResponders):
		return nil, bus.ErrNoResponders
	default:
		return nil, translate(err)
	}
}

// Connected implements bus.Bus. A server that falls silent is noticed when it has left two pings unanswered and the third is due: three
// times Options.Ping at most. It never waits.
func (b *Bus) Connected() bool {
	select {
	case <-b.gone:
		return false
	default:
		return !b.outage.on()
	}
}

// Kind implements bus.Bus.
func (b *Bus) Kind() bus.Kind { return b.kind }

// Counts implements bus.Bus.
func (b *Bus) Counts() bus.Counts {
	return bus.Counts{Published: b.published.Load(), Received: b.received.Load()}
}

// Server returns the server that Start started for this bus, nil if it did not. It ends with the bus.
func (b *Bus) Server() *Server { return b.own }

// subscription implements bus.Subscription.
type subscription struct {
	sub *nats.Subscription
	bus *Bus
}

// Unsubscribe implements bus.Subscription. It fails only where there is nothing to end. While an attempt to connect holds the library's
// lock, which Close or the end of the attempt frees, it is done behind the caller: nothing comes meanwhile.
func (s *subscription) Unsubscribe() {
	if s.bus.outage.on() {
		go func() { _ = s.sub.Unsubscribe() }()
		return
	}
	_ = s.sub.Unsubscribe()
}
