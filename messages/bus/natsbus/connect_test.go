package natsbus_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/natsbus"
	"github.com/moerack/moerack/messages/bus/natsbus/natstest"
)

// leakCheck looks for goroutines that are left when the test and its cleanups are over.
func leakCheck(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func closeBus(t *testing.T, b bus.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}

// echo answers requests on subject.
func echo(t *testing.T, b bus.Bus, subject string) {
	t.Helper()
	if _, err := b.Subscribe(subject, func(m bus.Message) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
}

func TestStart(t *testing.T) {
	leakCheck(t)
	s := natstest.Start(t, "")
	for _, tt := range []struct {
		name string
		url  string
		want bus.Kind
	}{
		{"in the process", "", bus.NATSInProc},
		{"elsewhere", s.URL, bus.NATSTCP},
		{"second of a list", unused(t) + " , " + s.URL, bus.NATSTCP},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := natsbus.Start(t.Context(), natsbus.Options{URL: tt.url, Name: "node a"})
			if err != nil {
				t.Fatal(err)
			}
			echo(t, b, "ask")
			answer, err := b.Request(t.Context(), "ask", []byte("hello"))
			if err != nil || string(answer) != "hello" {
				t.Errorf("got %q, %v", answer, err)
			}
			if b.Kind() != tt.want {
				t.Errorf("kind is %s, want %s", b.Kind(), tt.want)
			}
			if (b.Server() != nil) != (tt.url == "") {
				t.Errorf("its server is %v", b.Server())
			}
			closeBus(t, b)
		})
	}
}

// TestTraffic holds that the server, and not a short cut, carries what is sent.
func TestTraffic(t *testing.T) {
	leakCheck(t)
	b, err := natsbus.Start(t.Context(), natsbus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBus(t, b)
	got := make(chan bus.Message, 100)
	if _, err := b.Subscribe("n", func(m bus.Message) { got <- m }); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := b.Publish("n", nil); err != nil {
			t.Fatal(err)
		}
		<-got
	}
	if in, out, err := b.Server().Traffic(); in != 10 || out != 10 || err != nil {
		t.Errorf("the server counts %d in, %d out, %v: want 10 each", in, out, err)
	}
}

// unused returns the URL of a port that nobody listens on.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "nats://" + l.Addr().String()
}

// mute returns the URL of a listener that never says anything.
func mute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return "nats://" + l.Addr().String()
}

func TestConnectRefusals(t *testing.T) {
	leakCheck(t)
	locked, nobody, silent := natstest.Start(t, "secret"), unused(t), mute(t)
	for _, tt := range []struct {
		name, url string
		want      []string
	}{
		{"nobody listens", nobody, []string{nobody, "refused", "start a NATS server"}},
		{"no answer", silent, []string{silent, "no answer within 200ms", "check host and port"}},
		{"no credentials", locked.URL, []string{locked.URL, "refuses the credentials", "token@host"}},
		{"wrong credentials", withToken(locked.URL, "sesame"), []string{"…@127.0.0.1", "refuses the credentials"}},
		{"scheme", "http://h:1", []string{"http://h:1", `scheme "http"`, "legal are nats://host:port"}},
		{"no scheme", "localhost:4222", []string{"legal are nats://host:port"}},
		{"no host", "nats://:4222", []string{"no host"}},
		{"path", "nats://h:1/x", []string{"goes on after the port"}},
		{"all faults at once", "ftp://h, nats://", []string{`scheme "ftp"`, "no host"}},
		{"not parsed", "nats://u:sesame\x7f@h", []string{"cannot be parsed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := natsbus.Start(t.Context(), natsbus.Options{URL: tt.url, Wait: 200 * time.Millisecond})
			if err == nil {
				closeBus(t, b)
				t.Fatal("connected")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("%v shows what gives access", err)
			}
		})
	}
	b, err := natsbus.Connect(t.Context(), natsbus.Options{URL: withToken(locked.URL, "secret")})
	if err != nil {
		t.Fatal(err)
	}
	closeBus(t, b)
}

func withToken(url, token string) string {
	return strings.Replace(url, "nats://", "nats://"+token+"@", 1)
}

// TestConnectEndsWithItsContext ends it in the middle of a handshake that would take far longer.
func TestConnectEndsWithItsContext(t *testing.T) {
	leakCheck(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("changed my mind")
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
		}
		cancel(cause)
	}()
	start := time.Now()
	_, err = natsbus.Connect(ctx, natsbus.Options{URL: "nats://" + l.Addr().String(), Wait: time.Hour})
	if !errors.Is(err, cause) {
		t.Errorf("got %v after %s, want the cause", err, time.Since(start))
	}
	for _, url := range []string{"", "nats://" + l.Addr().String()} { // ended before
		if _, err := natsbus.Start(ctx, natsbus.Options{URL: url}); !errors.Is(err, cause) {
			t.Errorf("%q: got %v, want the cause", url, err)
		}
	}
}

// lines is a log that can be waited for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// await waits until the log has text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	for end := time.After(20 * time.Second); ; {
		l.mu.Lock()
		all := l.text.String()
		l.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
		select {
		case <-l.more:
		case <-end:
			t.Fatalf("no %q in the log:\n%s", text, all)
		}
	}
}

// TestReconnect holds that a bus outlives its server: what is sent meanwhile is lost without an error, subscriptions come back.
func TestReconnect(t *testing.T) {
	leakCheck(t)
	s := natstest.Start(t, "")
	log := newLines()
	b, err := natsbus.Connect(t.Context(), natsbus.Options{URL: s.URL, Logger: slog.New(slog.NewTextHandler(log, nil)), Wait: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBus(t, b)
	echo(t, b, "before")
	s.Stop()
	log.await(t, "bus lost its connection")
	if err := b.Publish("before", nil); err != nil {
		t.Errorf("publish without a connection: %v", err)
	}
	echo(t, b, "meanwhile")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Request(ctx, "before", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("request without a connection: got %v, want DeadlineExceeded", err)
	}
	s.Restart()
	log.await(t, "bus is connected again")
	for _, subject := range []string{"before", "meanwhile"} {
		if answer, err := b.Request(t.Context(), subject, []byte("x")); err != nil || string(answer) != "x" {
			t.Errorf("%s: got %q, %v", subject, answer, err)
		}
	}
}

// TestCloseWithoutServer closes a bus that tries to get its connection back.
func TestCloseWithoutServer(t *testing.T) {
	leakCheck(t)
	s := natstest.Start(t, "")
	log := newLines()
	b, err := natsbus.Connect(t.Context(), natsbus.Options{URL: s.URL, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	echo(t, b, "x")
	s.Stop()
	log.await(t, "bus lost its connection")
	waiting := make(chan error, 1)
	go func() {
		_, err := b.Request(context.WithoutCancel(t.Context()), "x", nil)
		waiting <- err
	}()
	closeBus(t, b)
	if err := <-waiting; !errors.Is(err, bus.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}
