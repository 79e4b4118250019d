package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
)

// hung is a node whose step in flight never ends.
type hung struct {
	failed chan struct{}
	waited time.Duration
}

func (h *hung) Done() <-chan struct{} { return h.failed }

func (h *hung) Close(ctx context.Context) error {
	begun := time.Now()
	<-ctx.Done()
	h.waited = time.Since(begun)
	return context.Cause(ctx)
}

func (h *hung) Stats() actors.Stats { return actors.Stats{Seconds: 1} }

// A second signal ends the process at once, unless it comes so soon that it is the first one sent twice.
func TestSecondInterrupt(t *testing.T) {
	for _, c := range []struct {
		later []time.Duration // after the first signal
		ends  int             // which of them ends the process, −1: none
	}{
		{[]time.Duration{300 * time.Millisecond}, 0},
		{[]time.Duration{0, time.Microsecond, 299 * time.Millisecond}, -1},
		{[]time.Duration{0, time.Second}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			signals, ended := make(chan os.Signal), -1
			ctx, watch, stop := Host{Signals: signals, Stderr: io.Discard, Exit: func(code int) { ended = code }}.interruptible()
			defer stop()
			watch.orderly.Store(true)
			begun := time.Now()
			signals <- os.Interrupt
			<-ctx.Done()
			if !interrupted(ctx) {
				t.Error("the first signal is not the cause")
			}
			for i, d := range c.later {
				<-time.After(time.Until(begun.Add(d)))
				signals <- syscall.SIGTERM
				synctest.Wait()
				if got := ended == exitInterrupted; got != (i == c.ends) {
					t.Errorf("%v: after signal %d ended is %v", c.later, i, got)
				}
			}
		})
	}
}

// An interrupt decides the exit code, however the node and the counters end, and a step that hangs is not waited for long.
func TestEndOfARun(t *testing.T) {
	for _, c := range []struct {
		name      string
		interrupt time.Duration // after Close has begun; −1: before it, −2: never
		fails     time.Duration // the same of the node's failure
		err       error         // of the run
		waited    time.Duration
		code      int
		said      string // what Run prints
	}{
		{"no interrupt", -2, -2, nil, closeTimeout, exitFailure, ""},
		{"no interrupt, refused lines", -2, -2, reportedError{exitUsage}, closeTimeout, exitUsage, ""},
		{"the node has failed", -2, -1, reportedError{exitFailure}, 2 * time.Second, exitFailure, ""},
		{"the node fails while closing", -2, 10 * time.Second, nil, 12 * time.Second, exitFailure, ""},
		{"the node fails at last", -2, 29 * time.Second, nil, closeTimeout, exitFailure, ""},
		{"interrupted", -1, -2, errInterrupted, 5 * time.Second, exitInterrupted, "interrupted"},
		{"interrupted when the node has failed", -1, -1, reportedError{exitFailure}, 2 * time.Second, exitInterrupted, "interrupted"},
		{"interrupted while closing", 10 * time.Second, -2, nil, 15 * time.Second, exitInterrupted, "interrupted"},
		{"interrupted with failed requests", -1, -2, reportedError{exitFailure}, 5 * time.Second, exitInterrupted, "interrupted"},
		{"interrupted, and the output is gone", -1, -2, errors.New("standard output: broken"), 5 * time.Second, exitInterrupted, "interrupted\nstandard output: broken"},
	} {
		synctest.Test(t, func(t *testing.T) {
			stats, err := openStats(filepath.Join(t.TempDir(), "stats.json"))
			if err != nil {
				t.Fatal(err)
			}
			var log, errs bytes.Buffer
			g := &generation{app: &app{Host: host(nil, &errs)}, log: slog.New(slog.NewTextHandler(&log, nil)), stats: stats}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			late, stop := grace(ctx)
			defer stop()
			switch {
			case c.interrupt == -1:
				cancel(errInterrupted)
			case c.interrupt >= 0:
				time.AfterFunc(c.interrupt, func() { cancel(errInterrupted) })
			}
			node := &hung{failed: make(chan struct{})}
			switch {
			case c.fails == -1:
				close(node.failed)
			case c.fails >= 0:
				time.AfterFunc(c.fails, func() { close(node.failed) })
			}
			end := g.end(ctx, late, node, c.err)
			if code := exitCode(end); code != c.code || node.waited != c.waited {
				t.Errorf("%s: exit code %d after %v, want %d after %v", c.name, code, node.waited, c.code, c.waited)
			}
			said := ""
			if err := unreported(end); err != nil {
				said = err.Error()
			}
			if said != c.said {
				t.Errorf("%s: says %q, want %q", c.name, said, c.said)
			}
			if loud := c.interrupt == -2; loud && !strings.Contains(errs.String(), " are over") || loud != (errs.Len() > 0) || loud == strings.Contains(log.String(), "level=WARN") {
				t.Errorf("%s: standard error %q, log %q", c.name, &errs, &log)
			}
		})
	}
}

// After an interrupt a request has the grace to end. One that does not has an answer all the same: what came so far.
func TestRequestThatDoesNotEndAfterAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		late, stop := grace(ctx)
		defer stop()
		time.AfterFunc(time.Hour, func() { cancel(errInterrupted) })
		begun := time.Now()
		a := &answer{stream: gateway.NewStream(func(*gateway.Stream) {}, nil, nil)}
		g := &generation{}
		if err := a.collect(late, g, func(string) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if a.finish != actors.FinishAbort || g.failed || time.Since(begun) != time.Hour+5*time.Second {
			t.Errorf("finish %q, failed %v, after %v", a.finish, g.failed, time.Since(begun))
		}
	})
}
