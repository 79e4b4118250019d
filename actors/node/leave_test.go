package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/messages/subject"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// farewells is what two nodes that end may take to tell each other.
const farewells = 1100 * time.Millisecond

// slow makes a rank's steps take 50 ms.
func slow(context.Context, int, *nn.Batch) error { <-time.After(50 * time.Millisecond); return nil }

// TestNodeCloses: when one of two nodes closes, the requests of the other that need it end with an error that names it, and so does the
// other; the one that closes does not wait for the other longer than the stall time. It is the coordinator that all need.
func TestNodeCloses(t *testing.T) {
	together, apart := ep(2, 1), topology.Layout{DataParallel: 2, TensorParallel: 1}
	for _, tt := range []struct {
		name    string
		layout  topology.Layout
		which   int // closes
		running bool
		want    string // error of the other, "" if it needs nobody
	}{
		{"the coordinator's, running", together, 0, true, "node a, which has the coordinator, has closed"},
		{"the coordinator's, parked", together, 0, false, "node a, which has the coordinator, has closed"},
		{"the coordinator's, with groups apart, running", apart, 0, true, "node a, which has the coordinator, has closed"},
		{"the coordinator's, with groups apart, parked", apart, 0, false, "node a, which has the coordinator, has closed"},
		{"the other, running", together, 1, true, "node b has closed"},
		{"the other, parked", together, 1, false, "node b has closed"},
		{"the other, with groups apart, running", apart, 1, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFakes(tt.layout)
				a, b := f.pair(t)
				a.StallTimeout, b.StallTimeout = 300*time.Millisecond, 300*time.Millisecond
				for _, m := range f.models {
					m.Before = slow
				}
				nodes := startBoth(t, a, b)
				one, other := nodes[tt.which], nodes[1-tt.which]
				request := actors.Request{IDs: []int32{1}, MaxTokens: 40, IgnoreEOS: true}
				answer := func() outcome { return outcome{} }
				if tt.running {
					s := submit(t, other, request)
					answer = func() outcome { return collect(t, s) }
				}
				began := time.Now()
				closeNode(t, one)
				if d := time.Since(began); d > 450*time.Millisecond {
					t.Errorf("closed after %s", d)
				}
				if err := one.Err(); err != nil {
					t.Errorf("the node that was closed has failed: %v", err)
				}
				if tt.want == "" {
					wantTokens(t, "the other's request", answer(), request.IDs, request.MaxTokens)
					closeNode(t, other)
					return
				}
				if tt.running {
					wantFailure(t, "request", answer().err, tt.want)
				}
				<-other.Done()
				wantFailure(t, "the other", other.Err(), tt.want)
				if d := time.Since(began); d > 450*time.Millisecond {
					t.Errorf("the other knew after %s", d)
				}
				closeNode(t, other)
			})
		})
	}
}

// TestCloseTogether: two nodes that close at about the same time do not wait for each other's votes, also where the bus loses messages.
func TestCloseTogether(t *testing.T) {
	const seeds = 20
	t.Logf("seeds 1 … %d", seeds)
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := membus.Options{Seed: seed + 1, Delay: time.Millisecond}
				most := farewells
				if seed%2 == 1 {
					o.Loss, most = 0.1, 5*time.Second // a drain repeats what was lost after a second at most
				}
				f := newFakes(ep(4, 1))
				a, b := f.pairOn(t, membus.New(o))
				nodes := startBoth(t, a, b)
				s := submit(t, nodes[seed%2], actors.Request{IDs: []int32{1}, MaxTokens: 5, IgnoreEOS: true})
				began := time.Now()
				done := make(chan error, 1)
				go func() { done <- nodes[seed/2%2].Close(t.Context()) }()
				<-time.After(time.Duration(seed) * time.Millisecond / 2)
				closeNode(t, nodes[1-seed/2%2])
				if err := <-done; err != nil {
					t.Errorf("close: %v", err)
				}
				if d := time.Since(began); d > most {
					t.Errorf("closed after %s", d)
				}
				collect(t, s)
			})
		})
	}
}

// TestCoordinatorLost: a node whose coordinator does not answer any more, while its bus is connected, fails by itself and says so; how
// long a step takes is no reason.
func TestCoordinatorLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		a, b := f.pair(t)
		a.StallTimeout, b.StallTimeout = 2*time.Second, 2*time.Second
		m := f.models[0]
		m.Before = func(_ context.Context, call int, _ *nn.Batch) error {
			if call == 1 { // long, but with progress
				for range 100 {
					<-time.After(time.Second)
					m.Progress.Tick(false)
				}
			}
			return nil
		}
		nodes := startBoth(t, a, b)
		s := submit(t, nodes[1], actors.Request{IDs: []int32{1}, MaxTokens: 40, IgnoreEOS: true})
		first, err := s.Recv(t.Context())
		if err != nil || len(first.Tokens) == 0 {
			t.Fatalf("the first token: %+v, %v", first, err)
		}
		isolated, ok := a.Bus.(*membus.Bus)
		if !ok {
			t.Fatalf("bus is a %T", a.Bus)
		}
		isolated.Isolate()
		began := time.Now()
		want := []string{"node b: no answer of the coordinator for 6s"}
		wantFailure(t, "request", collect(t, s).err, want...)
		<-nodes[1].Done()
		wantFailure(t, "node", nodes[1].Err(), want...)
		if d := time.Since(began); d < 5*time.Second || d > 7*time.Second {
			t.Errorf("noticed after %s", d)
		}
		isolated.Rejoin() // who was away learns that the other has ended
		<-nodes[0].Done()
		wantFailure(t, "the coordinator's node", nodes[0].Err(), "node b")
		closeBoth(t, nodes)
	})
}

// TestLongOperationOfAFailedNode: a rank that computes, and gets on, while its group ends for the fault of another, is told to stop: Close
// does not wait until it is through.
func TestLongOperationOfAFailedNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		m := f.models[0]
		m.Before = func(ctx context.Context, _ int, _ *nn.Batch) error {
			for {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(10 * time.Millisecond):
					m.Progress.Tick(false)
				}
			}
		}
		f.models[1].Before = func(context.Context, int, *nn.Batch) error { return errors.New("no memory") }
		n := startNode(t, f.options(t))
		s := submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 9})
		wantFailure(t, "request", collect(t, s).err, "rank 1 on node here: ", "no memory")
		<-n.Done()
		began := time.Now()
		closeNode(t, n)
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("closed after %s", d)
		}
	})
}

// TestStartGivenUp: that a start is given up while ranks load is told to the other nodes as the end of that node, not as a failure of the
// ranks whose loading it has cut short.
func TestStartGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		a, b := f.pair(t)
		a.load = func(int) (opening, func() int64) {
			return func(ctx context.Context) (rank.Opened, error) {
				<-ctx.Done()
				return rank.Opened{}, ctx.Err()
			}, func() int64 { return 0 }
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := make(chan error, 1)
		go func() {
			_, err := Start(ctx, a)
			first <- err
		}()
		_, err := Start(t.Context(), b)
		wantFailure(t, "the other's start", err, "node a, which has the coordinator, has closed")
		wantFailure(t, "the start", <-first, "rank 0 on node a is loading weights")
	})
}

// deaf is a bus that loses what a node says of its end.
type deaf struct {
	bus.Bus
	lost string // subject
}

func (d *deaf) Publish(subject string, data []byte) error {
	if subject == d.lost {
		return nil
	}
	return d.Bus.Publish(subject, data)
}

// TestHurryWhileLeaving: a Close whose context ends while other nodes are told does not wait for their answer, and whoever meets a rank
// of this node in a step is let go.
func TestHurryWhileLeaving(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		a, b := f.pair(t)
		a.StallTimeout, b.StallTimeout = time.Second, time.Second
		b.Bus = &deaf{Bus: b.Bus, lost: subject.Space{Cluster: b.Cluster}.Coordinator(subject.Done)}
		nodes := startBoth(t, a, b)
		f.models[1].Before = slow
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		time.AfterFunc(70*time.Millisecond, func() { // b has drained, and takes part until it ends
			s, err := nodes[0].Submit(t.Context(), actors.Request{IDs: []int32{1}, MaxTokens: 9, IgnoreEOS: true, Sampling: greedy()})
			if err != nil {
				t.Errorf("submit: %v", err)
				return
			}
			wantFailure(t, "request", collect(t, s).err, "node b")
		})
		if err := nodes[1].Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		closeNode(t, nodes[1])
		if d := time.Since(began); d > 200*time.Millisecond {
			t.Errorf("closed after %s", d)
		}
		<-nodes[0].Done()
		wantFailure(t, "the other", nodes[0].Err(), "node b")
		closeNode(t, nodes[0])
	})
}
