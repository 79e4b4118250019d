package natsbus_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/natsbus"
	"github.com/moerack/moerack/messages/bus/natsbus/natstest"
)

// TestCloseIsQuiet holds that a bus says nothing of its own end, above all not that it has lost its connection.
func TestCloseIsQuiet(t *testing.T) {
	leakCheck(t)
	s := natstest.Start(t, "")
	for _, tt := range []struct{ name, url string }{{"in the process", ""}, {"elsewhere", s.URL}} {
		for range 20 {
			log := newLines()
			b, err := natsbus.Start(t.Context(), natsbus.Options{URL: tt.url, Logger: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			entered, leave := make(chan struct{}), make(chan struct{})
			if _, err := b.Subscribe("x", func(bus.Message) { close(entered); <-leave }); err != nil {
				t.Fatal(err)
			}
			if err := b.Publish("x", nil); err != nil {
				t.Fatal(err)
			}
			<-entered
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if err := b.Close(over); !errors.Is(err, context.Canceled) { // the hard end: a handler still runs
				t.Errorf("%s: close gives %v, want Canceled", tt.name, err)
			}
			close(leave)
			closeBus(t, b)
			log.wantNothing(t, tt.name)
		}
	}
}

// TestInterruptedConnectIsQuiet ends contexts at about the moment when the connection is made.
func TestInterruptedConnectIsQuiet(t *testing.T) {
	leakCheck(t)
	s := natstest.Start(t, "")
	for _, url := range []string{"", s.URL} {
		for i := range 40 {
			log := newLines()
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
			b, err := natsbus.Start(ctx, natsbus.Options{URL: url, Logger: slog.New(slog.NewTextHandler(log, nil))})
			switch {
			case err == nil:
				closeBus(t, b)
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%q: got %v, want DeadlineExceeded", url, err)
			}
			cancel()
			log.wantNothing(t, url)
		}
	}
}

// wantNothing wants an empty log.
func (l *lines) wantNothing(t *testing.T, name string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() > 0 {
		t.Errorf("%s: the log says\n%s", name, &l.text)
	}
}
