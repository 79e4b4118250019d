package actors

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parent records what a strategy asks of it.
type parent struct {
	actor.Supervisor
	restarted chan time.Time
	stopped   []string
}

func (p *parent) RestartChildren(pids ...*actor.PID) { p.restarted <- time.Now() }
func (p *parent) StopChildren(pids ...*actor.PID)    { p.stopped = append(p.stopped, pids[0].Id) }

func newSupervision(given *[]string) *Supervision {
	return &Supervision{
		Budget: 3, Window: time.Minute, Delay: 100 * time.Millisecond, MaxDelay: 300 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler), GiveUp: func(_ *actor.PID, err error) { *given = append(*given, err.Error()) },
	}
}

func TestSupervisionBacksOffThenGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		s := newSupervision(&given)
		p := &parent{restarted: make(chan time.Time, 1)}
		child := actor.NewPID("here", "node/child")
		for i, limit := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond} {
			failed := time.Now()
			s.HandleFailure(nil, p, child, nil, "boom", &AbortAll{})
			if d := (<-p.restarted).Sub(failed); d < limit/2 || d > limit {
				t.Errorf("restart %d after %s, want %s … %s", i+1, d, limit/2, limit)
			}
		}
		s.HandleFailure(nil, p, child, nil, "boom", &actor.MessageEnvelope{Message: &AbortAll{}})
		if len(p.stopped) != 1 || p.stopped[0] != "node/child" {
			t.Errorf("stopped %v, want the child", p.stopped)
		}
		if len(given) != 1 {
			t.Fatalf("given up: %q, want one error", given)
		}
		for _, part := range []string{"actor node/child", "*actors.AbortAll", "boom", "failure 4 within 1m0s"} {
			if !strings.Contains(given[0], part) {
				t.Errorf("error %q does not name %q", given[0], part)
			}
		}
	})
}

func TestSupervisionForgetsOldFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		s := newSupervision(&given)
		p := &parent{restarted: make(chan time.Time, 1)}
		child := actor.NewPID("here", "child")
		for range 20 {
			s.HandleFailure(nil, p, child, nil, "boom", nil)
			<-p.restarted
			<-time.After(s.Window / 3) // on the bubble's clock
		}
		if len(p.stopped) > 0 || len(given) > 0 {
			t.Errorf("stopped %v, given up %v, though never more than 3 failures a minute", p.stopped, given)
		}
	})
}

func TestSupervisionCloseCancelsRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		s := newSupervision(&given)
		p := &parent{restarted: make(chan time.Time, 2)}
		s.HandleFailure(nil, p, actor.NewPID("here", "a"), nil, "boom", nil)
		s.Close()
		s.HandleFailure(nil, p, actor.NewPID("here", "b"), nil, "boom", nil)
		<-time.After(time.Minute)
		if len(p.restarted) != 0 {
			t.Errorf("%d restarts after Close", len(p.restarted))
		}
	})
}

func TestSystemIsQuietAndCounts(t *testing.T) {
	var out strings.Builder
	s := NewSystem(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s.Root.Send(actor.NewPID(s.Address(), "nobody"), &AbortAll{})
	if s.DeadLetters() != 1 {
		t.Errorf("%d dead letters, want 1", s.DeadLetters())
	}
	s.Logger().Warn("kept")
	s.Shutdown()
	if got := out.String(); strings.Contains(got, "DeadLetter") || strings.Contains(got, "started") || !strings.Contains(got, "kept") {
		t.Errorf("log of the library: %q, want warnings only", got)
	}
}
