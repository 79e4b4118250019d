package natsbus

import (
	"context"
	"fmt"
)

// leave lets go who waits, and the log say no more of the connection.
func (b *Bus) leave() {
	b.begin()
	b.outage.forget()
}

// Close implements bus.Bus. A server that Start started ends as well.
func (b *Bus) Close(ctx context.Context) error {
	b.mu.Lock()
	first := !b.ending
	b.ending = true
	b.mu.Unlock()
	if !first {
		select {
		case <-b.ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("natsbus: close: it is still closing: %w", context.Cause(ctx))
		}
	}
	if b.outage.on() {
		b.dialer.giveUp() // an attempt to connect holds the library's lock
	}
	b.leave()
	defer close(b.ended)
	_ = b.conn.Drain() // fails where it closes at once
	var err error
	select {
	case <-b.gone:
	case <-ctx.Done():
		err = fmt.Errorf("natsbus: close: handlers have not returned, or the server does not take what was published: %w", context.Cause(ctx))
		b.conn.Close()
	}
	b.dialer.giveUp()
	if b.own != nil {
		b.own.Close()
	}
	return err
}
