// Package natsbus is the bus over NATS: a server inside the process that opens no port, or one elsewhere. It is the only package
// that knows NATS. It uses plain subjects: nothing is stored, and no message is sent twice.
package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/moerack/moerack/messages/bus"
)

// Options say where a bus goes. The zero value is good for Start.
type Options struct {
	// URL of the server, nats://[user:password@|token@]host[:port], or with tls:// for TLS; several of one cluster are separated
	// by commas. Empty: a server inside the process.
	URL    string
	Name   string        // shown by the server for the connection, and of a server in the process; empty: none
	Logger *slog.Logger  // of what happens later, such as a lost connection; nil: silence
	Wait   time.Duration // for the server's answer to a connection attempt; 0: 5 s
	// Ping is the time between two pings to a server elsewhere, from ShortestPing to LongestPing; 0: LongestPing. A server that is
	// silent for two to three times as long has lost the connection. One in the process is always pinged at LongestPing.
	Ping time.Duration
}

// The bounds of Options.Ping.
const (
	ShortestPing = 50 * time.Millisecond // below it a busy machine looks like a silent server
	LongestPing  = time.Second
)

// PingFor returns the interval for a bus on which others are judged by a silence of this length: one that finds the server silent
// before, as far as the bounds allow.
func PingFor(silence time.Duration) time.Duration {
	return min(max(silence/4, ShortestPing), LongestPing)
}

// Start connects a bus: to the servers of o.URL, or, if it is empty, to a server that it starts in the process and ends when the
// bus is closed.
func Start(ctx context.Context, o Options) (*Bus, error) {
	if o.URL != "" {
		return Connect(ctx, o)
	}
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("natsbus: start: %w", err)
	}
	s, err := Embed(o)
	if err != nil {
		return nil, err
	}
	b, err := s.Connect(ctx, o)
	if err != nil {
		s.Close()
		return nil, err
	}
	b.own = s
	return b, nil
}

// withDefaults fills in what is left open.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wait <= 0 {
		o.Wait = 5 * time.Second
	}
	if o.Ping == 0 {
		o.Ping = LongestPing
	}
	return o
}

// Errors of options.
var (
	ErrURL  = errors.New("not the URL of a NATS server")
	ErrPing = errors.New("not a ping interval")
)

// Validate returns all faults, nil if there is none: ErrURL, ErrPing. No password is in the text.
func (o Options) Validate() error {
	var faults []error
	if o.URL != "" {
		_, _, err := o.servers()
		faults = append(faults, err)
	}
	if o.Ping != 0 && (o.Ping < ShortestPing || o.Ping > LongestPing) {
		faults = append(faults, fmt.Errorf("%w: %s: must be from %s to %s, or 0 for %s", ErrPing, o.Ping, ShortestPing, LongestPing, LongestPing))
	}
	return errors.Join(faults...)
}

// servers returns the URLs of o.URL as NATS wants them, and as they may be shown, or all faults.
func (o Options) servers() (list, shown []string, err error) {
	var faults []error
	for text := range strings.SplitSeq(o.URL, ",") {
		text = strings.TrimSpace(text)
		u, err := url.Parse(text)
		switch {
		case err != nil:
			// The error of url.Parse repeats the text, which may hold a password.
			faults = append(faults, fmt.Errorf("%w: it cannot be parsed", ErrURL))
		case u.Scheme != "nats" && u.Scheme != "tls":
			faults = append(faults, fmt.Errorf("%w: %s has scheme %q", ErrURL, redact(u), u.Scheme))
		case u.Hostname() == "":
			faults = append(faults, fmt.Errorf("%w: %s has no host", ErrURL, redact(u)))
		case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
			faults = append(faults, fmt.Errorf("%w: %s goes on after the port", ErrURL, redact(u)))
		default:
			list, shown = append(list, text), append(shown, redact(u))
		}
	}
	if faults != nil {
		return nil, nil, fmt.Errorf("%w: legal are nats://host:port and tls://host:port, several separated by commas", errors.Join(faults...))
	}
	return list, shown, nil
}

// redact shows a URL without what gives access.
func redact(u *url.URL) string {
	c := *u
	if c.User != nil {
		c.User = url.User("…")
	}
	s, err := url.PathUnescape(c.String())
	if err != nil {
		return c.Scheme + "://" + c.Host
	}
	return s
}

var _ bus.Bus = (*Bus)(nil)
