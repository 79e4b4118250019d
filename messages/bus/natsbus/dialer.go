package natsbus

import (
	"context"
	"net"
	"sync"
	"time"
)

// dialer makes the network connections of a bus, and ends all of them, made or in the making, when it gives up: the NATS library
// would wait for its timeouts.
type dialer struct {
	dial func(network, address string) (net.Conn, error)
	over func()

	mu    sync.Mutex // guards the fields below
	gone  bool
	conns map[*dialed]struct{} // open
}

func newDialer(wait time.Duration) *dialer {
	life, end := context.WithCancel(context.Background())
	n := net.Dialer{Timeout: wait}
	return &dialer{
		over: end, conns: map[*dialed]struct{}{},
		dial: func(network, address string) (net.Conn, error) { return n.DialContext(life, network, address) },
	}
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.dial(network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	counted := &dialed{Conn: c, dialer: d}
	d.conns[counted] = struct{}{}
	return counted, nil
}

// giveUp ends everything, for good.
func (d *dialer) giveUp() {
	d.over()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
	for c := range d.conns {
		_ = c.Conn.Close()
	}
	clear(d.conns)
}

// dialed is a connection that is forgotten when it is closed.
type dialed struct {
	net.Conn
	dialer *dialer
}

// Close implements net.Conn.
func (c *dialed) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.conns, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
