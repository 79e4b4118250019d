package natsbus_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/natsbus"
	"github.com/moerack/moerack/messages/bus/natsbus/natstest"
)

// TestFrozenServer holds that a server which keeps its connections and says nothing is found silent after two to three pings, and that a
// bus comes back to it.
func TestFrozenServer(t *testing.T) {
	leakCheck(t)
	proxy := natstest.Start(t, "").StartProxy(t)
	connect := func(ping time.Duration) (*natsbus.Bus, *lines) {
		log := newLines()
		b, err := natsbus.Connect(t.Context(), natsbus.Options{URL: proxy.URL, Ping: ping, Wait: 500 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeBus(t, b) })
		return b, log
	}
	quick, log := connect(natsbus.ShortestPing)
	slow, slowLog := connect(0)
	echo(t, quick, "x")
	echo(t, slow, "y")
	begun := time.Now()
	proxy.Freeze()
	log.await(t, "bus lost its connection")
	if quick.Connected() {
		t.Error("Connected() is true of a frozen server")
	}
	if gone, spent := !slow.Connected(), time.Since(begun); gone && spent < 2*natsbus.LongestPing {
		t.Errorf("the bus with the longest interval has lost the server after %s", spent)
	}
	slowLog.await(t, "bus lost its connection")
	if spent := time.Since(begun); spent < natsbus.LongestPing {
		t.Errorf("the bus with the longest interval has lost the server after %s", spent)
	}
	proxy.Thaw()
	log.await(t, "bus is connected again")
	slowLog.await(t, "bus is connected again")
	for subject, b := range map[string]*natsbus.Bus{"x": slow, "y": quick} {
		if answer, err := b.Request(t.Context(), subject, []byte("hello")); err != nil || string(answer) != "hello" {
			t.Errorf("%s: got %q, %v", subject, answer, err)
		}
	}
}

func TestPing(t *testing.T) {
	const ms = time.Millisecond
	for silence, want := range map[time.Duration]time.Duration{0: 50 * ms, 100 * ms: 50 * ms, 300 * ms: 75 * ms, 2 * time.Second: 500 * ms, 10 * time.Second: time.Second, time.Hour: time.Second} {
		if got := natsbus.PingFor(silence); got != want || (natsbus.Options{Ping: got}).Validate() != nil {
			t.Errorf("for a silence of %s: %s, want %s", silence, got, want)
		}
	}
	for _, ping := range []time.Duration{-1, 1, 49 * ms, 1001 * ms, time.Hour} {
		for _, url := range []string{"", "http://h"} {
			b, err := natsbus.Start(t.Context(), natsbus.Options{URL: url, Ping: ping})
			if err == nil {
				closeBus(t, b)
			}
			if !errors.Is(err, natsbus.ErrPing) || errors.Is(err, natsbus.ErrURL) != (url != "") || !strings.Contains(err.Error(), "from 50ms to 1s") {
				t.Errorf("%q, %s: got %v, want ErrPing", url, ping, err)
			}
		}
	}
}

// TestFrozenServerHoldsNobody holds that nobody waits for a server which takes connections and says nothing: neither those who send and
// ask, nor those who end.
func TestFrozenServerHoldsNobody(t *testing.T) {
	leakCheck(t)
	proxy := natstest.Start(t, "").StartProxy(t)
	log := newLines()
	b, err := natsbus.Connect(t.Context(), natsbus.Options{URL: proxy.URL, Ping: natsbus.ShortestPing, Wait: time.Hour, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := b.Subscribe("x", func(bus.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Freeze()
	log.await(t, "bus lost its connection")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // an attempt to connect has begun by then, and does not end
	defer cancel()
	if _, err := b.Request(ctx, "x", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("request: got %v, want DeadlineExceeded", err)
	}
	ended := make(chan error, 1)
	go func() {
		if b.Connected() {
			t.Error("Connected() is true of a frozen server")
		}
		if err := b.Publish("x", []byte("lost")); err != nil {
			t.Errorf("publish: %v", err)
		}
		sub.Unsubscribe()
		ended <- b.Close(t.Context())
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("close: %v", err)
		}
	case <-time.After(5 * time.Second):
		proxy.Thaw()
		t.Errorf("still waiting after 5s; thawed: %v", <-ended)
	}
}
