package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/messages/subject"
	"github.com/moerack/moerack/topology"
)

// ep is a layout whose engines step together.
func ep(dp, tp int) topology.Layout {
	return topology.Layout{DataParallel: dp, TensorParallel: tp, ExpertParallel: true}
}

// TestLayouts: whatever the layout, requests of all lengths get what each would get alone.
func TestLayouts(t *testing.T) {
	for _, l := range []topology.Layout{
		{DataParallel: 1, TensorParallel: 2},
		{DataParallel: 3, TensorParallel: 1},
		{DataParallel: 2, TensorParallel: 2},
		ep(1, 2), ep(2, 1), ep(4, 1), ep(2, 2),
	} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const seed = 5
				t.Logf("seed %d", seed)
				r := rand.New(rand.NewPCG(seed, 0))
				n := startNode(t, newFakes(l).options(t))
				var streams []*gateway.Stream
				var prompts [][]int32
				for i := range 12 * l.DataParallel {
					prompt := randomPrompt(r, 20)
					prompts = append(prompts, prompt)
					engine := i % l.DataParallel
					streams = append(streams, submit(t, n, actors.Request{IDs: prompt, MaxTokens: 1 + i%9, IgnoreEOS: true, Engine: &engine}))
				}
				for i, s := range streams {
					wantTokens(t, fmt.Sprintf("request %d", i), collect(t, s), prompts[i], 1+i%9)
				}
				closeNode(t, n) // no step follows
				wantStats(t, n, l)
			})
		})
	}
}

func randomPrompt(r *rand.Rand, most int) []int32 {
	prompt := make([]int32, 1+r.IntN(most))
	for i := range prompt {
		prompt[i] = int32(r.IntN(vocab))
	}
	return prompt
}

// wantStats checks what holds for every node that has run steps and has all of its layout.
func wantStats(t *testing.T, n *Node, l topology.Layout) {
	t.Helper()
	s := n.Stats()
	if len(s.Engines) != l.DataParallel || len(s.Ranks) != l.World() {
		t.Fatalf("stats of %d engines, %d ranks; want %d, %d", len(s.Engines), len(s.Ranks), l.DataParallel, l.World())
	}
	for i, e := range s.Engines {
		if e.Engine != i || e.Steps == 0 || e.RealTokens == 0 {
			t.Errorf("engine %d: %+v", i, e)
		}
		if l.ExpertParallel && e.Steps != s.Engines[0].Steps {
			t.Errorf("engine %d ran %d steps, engine 0 %d", i, e.Steps, s.Engines[0].Steps)
		}
	}
	for i, r := range s.Ranks {
		if r.Rank != i || r.WeightBytes == 0 {
			t.Errorf("rank %d: %+v", i, r)
		}
	}
	exchanged, local := s.Bytes.A2E > 0 && s.Bytes.E2A > 0 && s.ExchangeSteps.AllGather == s.Steps, s.Bytes.A2E == 0 && s.ExchangeSteps.Local == s.Steps
	if spread := l.EP() > 1; spread && !exchanged || !spread && !local || (l.TensorParallel > 1) != (s.Bytes.TP > 0) {
		t.Errorf("exchange steps %+v, bytes %+v of %d steps", s.ExchangeSteps, s.Bytes, s.Steps)
	}
	if s.Bus == nil || s.Bus.Votes < s.Steps || s.Bus.Plans < s.Steps {
		t.Errorf("bus %+v of %d steps", s.Bus, s.Steps)
	}
}

// TestParkAndWake: requests at random moments, on random engines, always wake a parked group.
func TestParkAndWake(t *testing.T) {
	const seed = 77
	t.Run("virtual time", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			rounds := 1000
			if racing {
				rounds = 100
			}
			parkAndWake(t, rounds, seed, func(r *rand.Rand) { <-time.After(time.Duration(r.IntN(3000)) * time.Millisecond) })
		})
	})
	t.Run("real time", func(t *testing.T) {
		parkAndWake(t, 50, seed, func(r *rand.Rand) { <-time.After(time.Duration(r.IntN(3000)) * time.Microsecond) })
	})
}

// parkAndWake submits requests, some rounds while others run, and waits for them after random pauses.
func parkAndWake(t *testing.T, rounds int, seed uint64, pause func(*rand.Rand)) {
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	n := startNode(t, newFakes(ep(2, 1)).options(t))
	for round := range rounds {
		pause(r)
		var streams []*gateway.Stream
		var prompts [][]int32
		for range 1 + r.IntN(3) {
			engine, prompt := r.IntN(2), randomPrompt(r, 6)
			prompts = append(prompts, prompt)
			streams = append(streams, submit(t, n, actors.Request{IDs: prompt, MaxTokens: 3, IgnoreEOS: true, Engine: &engine}))
			if r.IntN(2) == 0 {
				pause(r)
			}
		}
		for i, s := range streams {
			wantTokens(t, fmt.Sprintf("round %d, request %d", round, i), collect(t, s), prompts[i], 3)
		}
	}
}

// TestParkedIsSilent: a parked group sends nothing, on whichever node.
func TestParkedIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := newFakes(ep(4, 1)).pair(t)
		nodes := startBoth(t, a, b)
		wantTokens(t, "a request", collect(t, submit(t, nodes[1], actors.Request{IDs: []int32{1}, MaxTokens: 3})), []int32{1}, 3)
		<-time.After(time.Minute)
		before, before2 := a.Bus.Counts(), b.Bus.Counts()
		<-time.After(time.Hour)
		if after, after2 := a.Bus.Counts(), b.Bus.Counts(); after != before || after2 != before2 {
			t.Errorf("an hour parked: %+v and %+v, before %+v and %+v", after, after2, before, before2)
		}
		wantTokens(t, "another", collect(t, submit(t, nodes[0], actors.Request{IDs: []int32{2}, MaxTokens: 3})), []int32{2}, 3)
		closeBoth(t, nodes)
	})
}

// TestUnevenEngines: an engine that has finished early keeps step without rows until the other has finished, and no longer.
func TestUnevenEngines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		uneven(t, f, f.options(t))
	})
}

// uneven gives one engine a request of 4 tokens and the other nine of up to 50, and checks the steps of both. The first step is held
// until all requests are with the engines, and the one after it is planned before they come, so that all numbers are known.
func uneven(t *testing.T, f *fakes, o Options) actors.Stats {
	t.Helper()
	o.Cluster = "uneven"
	plans := make(chan struct{}, 1000)
	if _, err := o.Bus.Subscribe(subject.Space{Cluster: o.Cluster}.Plans("ep"), func(bus.Message) { plans <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	g := gated(f.models[1])
	n := startNode(t, o)
	zero, one := 0, 1
	var streams []*gateway.Stream
	var lengths []int
	give := func(engine *int, length int) {
		lengths = append(lengths, length)
		streams = append(streams, submit(t, n, actors.Request{IDs: []int32{3, int32(length)}, MaxTokens: length, IgnoreEOS: true, Engine: engine}))
	}
	give(&one, 50)
	<-g.began
	for range 3 { // the first park, the step that is held, the one after it
		<-plans
	}
	for i := range 8 {
		give(&one, 45-5*i)
	}
	give(&zero, 4)
	for _, engine := range []*int{&zero, &one} { // what ends behind them shows that they have arrived
		s := submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 1, Engine: engine})
		s.Cancel()
		if o := collect(t, s); o.finish != actors.FinishAbort {
			t.Errorf("a request that was cancelled: %s %v", o.finish, o.err)
		}
	}
	close(g.letGo)
	for i, s := range streams {
		if o := collect(t, s); len(o.tokens) != lengths[i] || o.finish != actors.FinishLength {
			t.Errorf("request %d: %d tokens, %s %v; want %d", i, len(o.tokens), o.finish, o.err, lengths[i])
		}
	}
	closeNode(t, n)
	s := n.Stats()
	a, b := s.Engines[0], s.Engines[1]
	// The request of 4 tokens takes as many steps. Lengths are known in advance, so no step follows the last token.
	if a.Steps != b.Steps || a.DummySteps != a.Steps-4 || b.DummySteps != 0 || a.PaddedTokens == 0 || b.Steps < 50 {
		t.Errorf("engine 0 %+v\nengine 1 %+v\nwant equal steps, all but 4 of them dummy on engine 0, none on engine 1", a, b)
	}
	return s
}

func closeNode(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestTwoNodes: two nodes on one bus share a layout; each serves the requests of its own engines.
func TestTwoNodes(t *testing.T) {
	for _, l := range []topology.Layout{ep(4, 1), ep(4, 2), {DataParallel: 4, TensorParallel: 1}} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFakes(l)
				a, b := f.pair(t)
				nodes := startBoth(t, a, b)
				for i := range 8 {
					engine, prompt := i%4, []int32{int32(i), 3}
					s := submit(t, nodes[engine/2], actors.Request{IDs: prompt, MaxTokens: 5, IgnoreEOS: true, Engine: &engine})
					wantTokens(t, fmt.Sprintf("engine %d", engine), collect(t, s), prompt, 5)
				}
				three := 3
				if _, err := nodes[0].Submit(t.Context(), actors.Request{IDs: []int32{1}, Sampling: greedy(), Engine: &three}); err == nil || !strings.Contains(err.Error(), "this one serves engines 0 … 1") {
					t.Errorf("a request for an engine of the other node: %v", err)
				}
				if s := nodes[1].Stats(); s.Engines[0].Engine != 2 || s.Ranks[0].Rank != 2*l.TensorParallel || len(s.Engines) != 2 {
					t.Errorf("stats of the second node: %+v", s)
				}
				closeBoth(t, nodes)
			})
		})
	}
}

// pair are options of two nodes that share the layout: the first has the coordinator and one half of the engines.
func (f *fakes) pair(t *testing.T) (a, b Options) {
	t.Helper()
	return f.pairOn(t, membus.New(membus.Options{}))
}

func (f *fakes) pairOn(t *testing.T, network *membus.Network) (a, b Options) {
	t.Helper()
	a = f.options(t)
	a.Cluster, a.Name, a.Engines = "c", "a", f.layout.DataParallel/2
	a.Bus = newBus(t, network)
	b = a
	b.Name, b.Coordinate, b.Bus, b.FirstEngine = "b", false, newBus(t, network), a.Engines
	return a, b
}

func startBoth(t *testing.T, a, b Options) [2]*Node {
	t.Helper()
	var nodes [2]*Node
	second := make(chan error, 1)
	go func() {
		var err error
		nodes[1], err = Start(t.Context(), b)
		second <- err
	}()
	var err error
	if nodes[0], err = Start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	return nodes
}

// closeBoth closes two nodes at once. The first that has drained says that it leaves, and the other does not wait for it.
func closeBoth(t *testing.T, nodes [2]*Node) {
	t.Helper()
	began := time.Now()
	defer func() {
		if d := time.Since(began); d > farewells {
			t.Errorf("closed after %s", d)
		}
	}()
	first := make(chan error, 1)
	go func() { first <- nodes[0].Close(context.WithoutCancel(t.Context())) }()
	if err := nodes[1].Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-first; err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestStartWithoutTheOthers: whoever does not come is named.
func TestStartWithoutTheOthers(t *testing.T) {
	f := newFakes(ep(4, 1))
	for _, tt := range []struct {
		name  string
		which int
		want  string
	}{
		{"no other engines", 0, "node a: start: absent for 1m0s (start-timeout): no node has engines 2, 3"},
		{"no coordinator", 1, `node b: start: absent for 1m0s (start-timeout): the coordinator of cluster "c" does not answer on bus memory`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a, b := f.pair(t)
				o := []Options{a, b}[tt.which]
				o.StartTimeout = time.Minute
				began := time.Now()
				if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("start: %v\nwant %s", err, tt.want)
				}
				if d := time.Since(began); d < time.Minute || d > 61*time.Second {
					t.Errorf("gave up after %s", d)
				}
			})
		})
	}
}

// TestRegistrationRefused: all that keeps a node out comes at once, before anything is loaded.
func TestRegistrationRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := newFakes(ep(4, 1)).options(t)
		o.Devices = 3
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "rank 3 on node here needs device 3 of host local, which has 3") {
			t.Errorf("too few devices: %v", err)
		}
	})
}

// TestDrain: a node that closes lets all its engines park before it stops them.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := startNode(t, newFakes(ep(2, 2)).options(t))
		var streams []*gateway.Stream
		for range 6 {
			streams = append(streams, submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 50, IgnoreEOS: true}))
		}
		began := time.Now()
		if err := n.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		for i, s := range streams {
			if o := collect(t, s); o.finish != actors.FinishAbort && o.finish != actors.FinishLength { // the latter if it was faster
				t.Errorf("request %d: %s %v, want abort", i, o.finish, o.err)
			}
		}
		if d := time.Since(began); d > time.Second || n.Err() != nil {
			t.Errorf("closed after %s, node %v", d, n.Err())
		}
		if s := n.Stats(); s.Engines[0].Steps != s.Engines[1].Steps {
			t.Errorf("engines ran %d and %d steps", s.Engines[0].Steps, s.Engines[1].Steps)
		}
	})
}
