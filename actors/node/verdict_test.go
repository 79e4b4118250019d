package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// TestVerdict: a rank that fails, dies or hangs in a group of several ends the epoch: all requests end with an error that names
// rank, step, layer and operation, the node fails with the same, and Close leaves behind at most the rank that hangs.
func TestVerdict(t *testing.T) {
	for _, l := range []topology.Layout{ep(2, 1), ep(2, 2), {DataParallel: 1, TensorParallel: 2}} {
		for _, tt := range []struct {
			name  string
			fault func(letGo chan struct{}) error
			want  string
			hangs bool
		}{
			{"fails", func(chan struct{}) error { return errors.New("no memory") }, "no memory", false},
			{"dies", func(chan struct{}) error { panic("index out of range") }, "panic on the device thread: index out of range", false},
			{"hangs", func(letGo chan struct{}) error { <-letGo; return nil }, "no progress for 300ms", true},
		} {
			t.Run(fmt.Sprintf("%+v %s", l, tt.name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f, letGo := newFakes(l), make(chan struct{})
					o := f.options(t)
					o.StallTimeout = 300 * time.Millisecond
					f.models[1].Before = func(_ context.Context, call int, _ *nn.Batch) error {
						if call == 3 {
							return tt.fault(letGo)
						}
						return nil
					}
					n, err := Start(t.Context(), o)
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					// The first plan of a group parks it, so call 3 is step 4.
					want := []string{"rank 1 on node here: step 4: layer 0: attention: ", tt.want}
					var requests []func() error
					for range 4 {
						requests = append(requests, failing(t, n, actors.Request{IDs: []int32{1, 2}, MaxTokens: 9, IgnoreEOS: true}))
					}
					for i, failure := range requests {
						wantFailure(t, fmt.Sprintf("request %d", i), failure(), want...)
					}
					<-n.Done()
					wantFailure(t, "node", n.Err(), want...)
					if d := time.Since(began); d > 700*time.Millisecond {
						t.Errorf("ended after %s", d)
					}
					checkClose(t, n, tt.hangs, func() { close(letGo) })
				})
			})
		}
	}
}

// failing submits a request to a node that is about to fail, or has, and returns what tells its error.
func failing(t *testing.T, n *Node, r actors.Request) func() error {
	t.Helper()
	r.Sampling = greedy()
	s, err := n.Submit(t.Context(), r)
	if err != nil { // the fault was faster
		return func() error { return err }
	}
	return func() error { return collect(t, s).err }
}

func wantFailure(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: error %q does not say %q", what, err, p)
		}
	}
}

// checkClose closes a failed node. If its rank 1 hangs, Close names it in time, and all is closed once it is let go.
func checkClose(t *testing.T, n *Node, hangs bool, letGo func()) {
	t.Helper()
	began := time.Now()
	err := n.Close(t.Context())
	if d := time.Since(began); d > 10*grace { // about one on an idle host
		t.Errorf("close took %s", d)
	}
	if !hangs {
		if err != nil {
			t.Errorf("close: %v", err)
		}
		return
	}
	wantFailure(t, "close", err, "close: left behind: rank 1 on node ", " is stopping, in step ")
	if err != nil && strings.Contains(err.Error(), "rank 0") {
		t.Errorf("close left rank 0 behind too: %v", err)
	}
	letGo()
	<-n.closed
	if err := n.Close(t.Context()); err != nil {
		t.Errorf("close, when it hangs no more: %v", err)
	}
}

// TestVerdictReachesAllNodes: a rank that fails on one node ends the requests of the other with the same cause.
func TestVerdictReachesAllNodes(t *testing.T) {
	for which := range 2 { // rank 0 is beside the coordinator, rank 3 is not
		bubble(t, func(t *testing.T) {
			f := newFakes(ep(4, 1))
			a, b := f.pair(t)
			f.models[3*which].Before = func(context.Context, int, *nn.Batch) error { return errors.New("no memory") }
			nodes := startBoth(t, a, b)
			want := fmt.Sprintf("rank %d on node %s: step 2: layer 0: attention: no memory", 3*which, []string{"a", "b"}[which])
			s := submit(t, nodes[1-which], actors.Request{IDs: []int32{1}, MaxTokens: 9})
			wantFailure(t, "request", collect(t, s).err, want)
			for _, n := range nodes {
				<-n.Done()
				wantFailure(t, "node", n.Err(), want)
			}
			closeBoth(t, nodes)
		})
	}
}

// TestLostNode: a node that is closed in the middle of a step, without waiting for its end, is named by the other.
func TestLostNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		a, b := f.pair(t)
		g := gated(f.models[1])
		a.StallTimeout, b.StallTimeout = 300*time.Millisecond, 300*time.Millisecond
		nodes := startBoth(t, a, b)
		s := submit(t, nodes[0], actors.Request{IDs: []int32{1}, MaxTokens: 9})
		<-g.began
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := nodes[1].Close(ended); err == nil {
			t.Error("close of the node in the step: no error, want the context's")
		}
		wantFailure(t, "request", collect(t, s).err, "node b has closed")
		<-nodes[0].Done()
		close(g.letGo)
		closeBoth(t, nodes)
	})
}

// TestSilentCoordinator: a node that has lost a rank and hears no verdict fails by itself after the stall time; the coordinator
// names the node that it has not heard of.
func TestSilentCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		a, b := f.pair(t)
		a.StallTimeout, b.StallTimeout = 300*time.Millisecond, 300*time.Millisecond
		g := gated(f.models[1])
		wait := f.models[1].Before
		f.models[1].Before = func(ctx context.Context, call int, batch *nn.Batch) error {
			_ = wait(ctx, call, batch)
			panic("index out of range")
		}
		nodes := startBoth(t, a, b)
		s := submit(t, nodes[0], actors.Request{IDs: []int32{1}, MaxTokens: 9})
		<-g.began
		isolated, ok := b.Bus.(*membus.Bus)
		if !ok {
			t.Fatalf("bus is a %T", b.Bus)
		}
		isolated.Isolate()
		close(g.letGo)
		<-nodes[1].Done()
		wantFailure(t, "the node on its own", nodes[1].Err(), "rank 1 on node b: step 2: layer 0: attention: panic on the device thread")
		wantFailure(t, "request", collect(t, s).err, "rank 1 on node b: ", "no sign of life of node b for 3")
		<-nodes[0].Done()
		closeBoth(t, nodes)
	})
}

// TestDrainIsBounded: a node that closes does not wait for another's requests longer than the stall time; the other names who left.
func TestDrainIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		a, b := f.pair(t)
		a.StallTimeout, b.StallTimeout = 300*time.Millisecond, 300*time.Millisecond
		stepping := make(chan struct{}, 1)
		f.models[0].Before = func(context.Context, int, *nn.Batch) error {
			select {
			case stepping <- struct{}{}:
			default:
			}
			<-time.After(50 * time.Millisecond)
			return nil
		}
		nodes := startBoth(t, a, b)
		s := submit(t, nodes[0], actors.Request{IDs: []int32{1}, MaxTokens: 50, IgnoreEOS: true})
		<-stepping // a node that closes before the group woke has nothing to wait for
		began := time.Now()
		if err := nodes[1].Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if d := time.Since(began); d < 300*time.Millisecond || d > 500*time.Millisecond {
			t.Errorf("closed after %s", d)
		}
		wantFailure(t, "request", collect(t, s).err, "node b has closed")
		<-nodes[0].Done()
		if err := nodes[0].Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// TestFailedActors: an actor whose state dies with it fails the node at its first panic, and every request ends.
func TestFailedActors(t *testing.T) {
	for _, name := range []string{"coordinator", "agent/ep", "expertgroup/ep"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFakes(ep(2, 1))
				g := gated(f.models[0])
				n := startNode(t, f.options(t))
				s := submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 9})
				<-g.began
				pid := n.pid(name)
				n.strategy.HandleFailure(n.system.ActorSystem, stopper{n.system}, pid, nil, "boom", &actors.AbortAll{})
				want := "node here: actor node/" + name + ": panic at message *actors.AbortAll: boom"
				wantFailure(t, "request", collect(t, s).err, want)
				<-n.Done()
				wantFailure(t, "node", n.Err(), want)
				close(g.letGo)
			})
		})
	}
}
