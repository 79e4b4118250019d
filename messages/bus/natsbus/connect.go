package natsbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/moerack/moerack/messages/bus"
)

// inbox begins the subjects that answers go to. A server that limits what a user may do must allow it with ".>" behind.
const inbox = "moerack-inbox"

// Connect connects to the servers of o.URL, which must not be empty. It tries each once, until ctx ends; afterwards a lost
// connection is made again as often as needed. The error names the servers and what to do.
func Connect(ctx context.Context, o Options) (*Bus, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("natsbus: connect: %w", err)
	}
	o = o.withDefaults()
	list, shown, err := o.servers()
	if err != nil {
		return nil, fmt.Errorf("natsbus: connect: %w", err)
	}
	where := strings.Join(shown, ", ")
	d := newDialer(o.Wait)
	b, err := connect(ctx, o, bus.NATSTCP, d, strings.Join(list, ","), nats.SetCustomDialer(d))
	if err != nil {
		return nil, fmt.Errorf("natsbus: connect to %s: %w", where, explain(ctx, o, err))
	}
	return b, nil
}

// connect makes a connection of a kind.
func connect(ctx context.Context, o Options, kind bus.Kind, d *dialer, url string, way nats.Option) (*Bus, error) {
	b := newBus(o, kind, d)
	stop := context.AfterFunc(ctx, func() { // also in the middle of an attempt
		b.leave()
		d.giveUp()
	})
	opts := append(b.options(o), way)
	conn, err := nats.Connect(url, opts...)
	if err != nil {
		stop()
		d.giveUp()
		return nil, err
	}
	b.conn = conn
	if !stop() { // ctx has ended and the connection with it
		b.leave()
		conn.Close()
		<-b.gone
		return nil, context.Cause(ctx)
	}
	return b, nil
}

// options returns how every connection is made.
func (b *Bus) options(o Options) []nats.Option {
	return []nats.Option{
		nats.Name(o.Name),
		nats.Timeout(o.Wait),
		nats.CustomInboxPrefix(inbox),
		// A silent connection is given up when the third ping is due and none of the two before it has an answer.
		nats.PingInterval(o.Ping),
		nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		// What is sent while there is no connection is lost: senders repeat, and what is stale by then helps nobody.
		nats.ReconnectBufSize(-1),
		nats.DrainTimeout(24 * time.Hour), // Close has a context
		nats.ErrorHandler(b.onError),
		nats.DisconnectErrHandler(b.onDisconnect),
		nats.ReconnectHandler(b.onReconnect),
		nats.ClosedHandler(func(*nats.Conn) { close(b.gone) }),
	}
}

// explain says what to do about a connection that could not be made.
func explain(ctx context.Context, o Options, err error) error {
	var network net.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("connection refused (%w): start a NATS server there, or correct the URL", err)
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("the server refuses the credentials (%w): put what it asks for into the URL, nats://user:password@host or nats://token@host", err)
	case errors.Is(err, nats.ErrTimeout) || errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("no answer within %s (%w): check host and port, and that a NATS server listens there", o.Wait, err)
	default:
		return fmt.Errorf("%w: check the URL and the server's log", err)
	}
}
