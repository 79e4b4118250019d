package actors

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Supervision is the strategy by which a parent treats a child that panicked: restart it after a delay that doubles with
// every failure within Window, half of it random, capped at MaxDelay; after Budget failures within Window stop it and tell
// the parent. Messages for the child wait meanwhile. The strategies of the actor library restart without delay or without end.
type Supervision struct {
	Budget   int           // restarts within Window; 0: the first failure stops the child
	Window   time.Duration // failures older than this are forgotten
	Delay    time.Duration // before the first restart
	MaxDelay time.Duration
	Logger   *slog.Logger
	// GiveUp is called in the parent's context when a child is stopped for good; err names the child and the cause. It must
	// not block.
	GiveUp func(child *actor.PID, err error)

	mu       sync.Mutex             // guards the fields below
	failures map[string][]time.Time // by child, within Window
	timers   map[*time.Timer]struct{}
	closed   bool
}

// HandleFailure implements the library's strategy. It is called in the parent's context.
func (s *Supervision) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, message any) {
	failed, ok := s.count(child.Id, time.Now())
	err := fmt.Errorf("actor %s: panic at message %T: %v", child.Id, unwrap(message), reason)
	if !ok {
		if failed > 1 {
			err = fmt.Errorf("%w (failure %d within %s)", err, failed, s.Window)
		}
		parent.StopChildren(child)
		s.GiveUp(child, err)
		return
	}
	delay := s.delay(failed)
	s.Logger.Error("actor failed, restarting it", "actor", child.Id, "error", err, "failures", failed, "delay", delay)
	s.after(delay, func() { parent.RestartChildren(child) })
}

// count records a failure and returns how many there were within the window, and whether the budget covers it.
func (s *Supervision) count(child string, now time.Time) (failed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures == nil {
		s.failures = map[string][]time.Time{}
	}
	recent := s.failures[child][:0]
	for _, t := range s.failures[child] {
		if now.Sub(t) < s.Window {
			recent = append(recent, t)
		}
	}
	recent = append(recent, now)
	s.failures[child] = recent
	return len(recent), len(recent) <= s.Budget
}

// delay returns the time before the restart that follows failure number failed.
func (s *Supervision) delay(failed int) time.Duration {
	d := s.Delay
	for range failed - 1 {
		if d >= s.MaxDelay/2 {
			d = s.MaxDelay
			break
		}
		d *= 2
	}
	d = min(d, s.MaxDelay)
	return d/2 + rand.N(d/2+1)
}

func (s *Supervision) after(d time.Duration, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.timers == nil {
		s.timers = map[*time.Timer]struct{}{}
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		s.mu.Lock()
		closed := s.closed
		delete(s.timers, t)
		s.mu.Unlock()
		if !closed {
			f()
		}
	})
	s.timers[t] = struct{}{}
}

// Close cancels restarts that are due. Later failures are counted but restart nothing.
func (s *Supervision) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for t := range s.timers {
		t.Stop()
	}
	clear(s.timers)
}

// unwrap returns the message inside the library's envelope, if it is in one.
func unwrap(message any) any {
	if e, ok := message.(*actor.MessageEnvelope); ok {
		return e.Message
	}
	return message
}
