package node

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/rank"
)

func TestCloseDuringAStep(t *testing.T) {
	var g *gate
	var model *actortest.Model
	n := startNode(t, fakeOptions(t, func(m *actortest.Model, _ *Options) { g, model = gated(m), m }))
	var streams []*gateway.Stream
	for range 6 {
		streams = append(streams, submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 9}))
	}
	<-g.began
	closed := make(chan error, 3)
	for range cap(closed) {
		go func() { closed <- n.Close(t.Context()) }()
	}
	for i, s := range streams {
		if o := collect(t, s); o.finish != actors.FinishAbort {
			t.Errorf("request %d: %+v, want abort", i, o)
		}
	}
	if _, err := n.Submit(t.Context(), actors.Request{IDs: []int32{1}, Sampling: greedy()}); !errors.Is(err, ErrClosed) {
		t.Errorf("a request then: %v", err)
	}
	if len(closed) != 0 || model.Closed() != 0 {
		t.Error("closed before the step in flight ended")
	}
	close(g.letGo)
	for range cap(closed) {
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if err := n.Close(t.Context()); err != nil || model.Closed() != 1 {
		t.Errorf("once more: %v, model closed %d times", err, model.Closed())
	}
	streams[0].Cancel() // of a node that is gone
}

func TestCloseGivesUpWaiting(t *testing.T) {
	var g *gate
	n := startNode(t, fakeOptions(t, func(m *actortest.Model, _ *Options) { g = gated(m) }))
	s := submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 9})
	<-g.began
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := n.Close(ended)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "rank 0 on node here") {
		t.Errorf("close: %v, want it to name the rank", err)
	}
	collect(t, s)
	// The step was cancelled, so the Close of the cleanup returns.
}

// stuck is a loader that waits until let go.
func stuck(o *Options, progress func() int64) (letGo chan struct{}) {
	letGo = make(chan struct{})
	open, _ := o.load(0)
	o.load = func(int) (func(context.Context) (rank.Opened, error), func() int64) {
		return func(ctx context.Context) (rank.Opened, error) { <-letGo; return open(ctx) }, progress
	}
	return letGo
}

func TestStartNamesWhoIsAbsent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := fakeOptions(t, nil)
		o.StartTimeout = time.Minute
		letGo := stuck(&o, func() int64 { return 77 })
		began := time.Now()
		_, err := Start(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "absent: rank 0 on node here is loading weights, no progress for 1m0s after 77 bytes") {
			t.Errorf("start: %v", err)
		}
		if d := time.Since(began); d < time.Minute || d > time.Minute+time.Second {
			t.Errorf("gave up after %s", d)
		}
		close(letGo)
	})
}

func TestStartWaitsWhileThereIsProgress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := fakeOptions(t, nil)
		o.StartTimeout = time.Minute
		var bytes atomic.Int64
		letGo := stuck(&o, func() int64 { return bytes.Add(1) })
		time.AfterFunc(10*time.Minute, func() { close(letGo) })
		n, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStartEndsWithContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := fakeOptions(t, nil)
		letGo := stuck(&o, func() int64 { return 0 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Start(ctx, o); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "rank 0 on node here is loading weights") {
			t.Errorf("start: %v", err)
		}
		close(letGo)
	})
}

func TestStartFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func() error
		want string
	}{
		{"error", func() error { return errors.New("loading weights: tensor \"x\" is missing") }, "rank 0 on node here: loading weights: tensor \"x\" is missing"},
		{"panic", func() error { panic("bad header") }, "rank 0 on node here: while loading: panic on the device thread: bad header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := fakeOptions(t, nil)
			o.load = func(int) (func(context.Context) (rank.Opened, error), func() int64) {
				return func(context.Context) (rank.Opened, error) { return rank.Opened{}, tt.open() }, func() int64 { return 0 }
			}
			if _, err := Start(t.Context(), o); err == nil || err.Error() != tt.want {
				t.Errorf("start: %v\nwant %s", err, tt.want)
			}
		})
	}
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "Config is missing") {
		t.Errorf("without options: %v", err)
	}
}

// TestPanicsOfActors: a panic ends the requests it concerns with an error, the actor comes back, and one that keeps failing
// fails the node, with nobody left waiting.
func TestPanicsOfActors(t *testing.T) {
	for _, tt := range []struct {
		actor string
		blow  any // makes it panic
	}{
		{"node/scheduler/0", &actors.Submit{ID: 1 << 60}},
		{"node/gateway", &gateway.Open{}},
	} {
		t.Run(tt.actor, func(t *testing.T) {
			var g *gate
			n := startNode(t, fakeOptions(t, func(m *actortest.Model, _ *Options) { g = gated(m) }))
			blow := func() { n.system.Root.Send(actor.NewPID(n.system.Address(), tt.actor), tt.blow) }
			s := submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 50})
			<-g.began
			blow()
			if o := collect(t, s); o.finish != actors.FinishError || !strings.Contains(o.err.Error(), "failed and restarts") {
				t.Errorf("the running request: %+v", o)
			}
			close(g.letGo)
			wantTokens(t, "after the restart", collect(t, submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 3})), []int32{1}, 3)
			for range restartBudget {
				blow()
			}
			<-n.Done()
			if err := n.Err(); !strings.Contains(err.Error(), "node here: actor "+tt.actor) || !strings.Contains(err.Error(), "failure 4 within 1m0s") {
				t.Errorf("node: %v", err)
			}
		})
	}
}

// TestNobodyWaitsForAFailingNode: whatever was handed over around the failure of an actor ends.
func TestNobodyWaitsForAFailingNode(t *testing.T) {
	for _, name := range []string{"node/scheduler/0", "node/gateway", "node/rank/0", "node"} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, fakeOptions(t, nil))
			pid := actor.NewPID(n.system.Address(), name)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for {
						s, err := n.Submit(t.Context(), actors.Request{IDs: []int32{1}, MaxTokens: 5, Sampling: greedy()})
						if err != nil {
							return
						}
						if o := collect(t, s); o.finish == "" {
							t.Error("a request without an end")
						}
					}
				})
			}
			for i := 0; n.Err() == nil; i++ {
				// A failure that nobody outlives: the strategy is told of it again and again.
				n.strategy.HandleFailure(n.system.ActorSystem, stopper{n.system}, pid, nil, "boom", nil)
			}
			wg.Wait()
		})
	}
}

// stopper is a parent that can only stop children.
type stopper struct{ *actors.System }

func (stopper) Children() []*actor.PID        { return nil }
func (stopper) EscalateFailure(_, _ any)      {}
func (stopper) RestartChildren(...*actor.PID) {}
func (stopper) ResumeChildren(...*actor.PID)  {}
func (s stopper) StopChildren(pids ...*actor.PID) {
	for _, pid := range pids {
		s.Root.Stop(pid)
	}
}

// TestRequestsOfDeadActors: what is submitted when an engine's scheduler, or its rank, has stopped for good ends with an error.
func TestRequestsOfDeadActors(t *testing.T) {
	for _, name := range []string{"node/scheduler/0", "node/rank/0"} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, fakeOptions(t, nil))
			if err := n.system.Root.StopFuture(actor.NewPID(n.system.Address(), name)).Wait(); err != nil {
				t.Fatal(err)
			}
			if o := collect(t, submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 5})); o.finish != actors.FinishError || o.err == nil {
				t.Errorf("finish %q, error %v, want an error", o.finish, o.err)
			}
		})
	}
}

// TestCloseAgain: once all is closed, Close says so, whatever its context.
func TestCloseAgain(t *testing.T) {
	n := startNode(t, fakeOptions(t, nil))
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := n.Close(ended); err != nil {
			t.Fatalf("close of a closed node: %v", err)
		}
	}
}
