package natsbus

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/moerack/moerack/messages/bus"
)

// check refuses what NATS would refuse later, or misunderstand.
func (b *Bus) check(subject string, data []byte) error {
	if err := bus.CheckSubject(subject); err != nil {
		return err
	}
	return b.fits(subject, data)
}

// fits refuses data above the server's limit.
func (b *Bus) fits(subject string, data []byte) error {
	if b.outage.on() {
		return nil // it is lost, whatever its size
	}
	if limit := b.conn.MaxPayload(); limit > 0 && int64(len(data)) > limit {
		return fmt.Errorf("%s: %w: %d bytes, the server's max_payload is %d", subject, bus.ErrTooLarge, len(data), limit)
	}
	return nil
}

// offline reports an error that says only that there is no connection at present.
func offline(err error) bool {
	return errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrConnectionReconnecting)
}

// translate returns an error as the contract calls it.
func translate(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining) {
		return bus.ErrClosed
	}
	return err
}

// onError takes what NATS reports on its own, for example that a handler is too slow and messages were dropped.
func (b *Bus) onError(_ *nats.Conn, s *nats.Subscription, err error) {
	select {
	case <-b.closing: // whatever was lost, nobody misses it
		return
	default:
	}
	subject := ""
	if s != nil {
		subject = s.Subject
	}
	b.log.Warn("bus reports an error", "subject", subject, "error", err)
}

func (b *Bus) onDisconnect(_ *nats.Conn, err error) { b.outage.begin(err) }

func (b *Bus) onReconnect(c *nats.Conn) { b.outage.end(c.ConnectedServerName()) }
