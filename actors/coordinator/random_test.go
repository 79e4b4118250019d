package coordinator

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moerack/moerack/actors"
)

var oneSeed = flag.Uint64("seed", 0, "play this seed only")

// seeds runs f for many seeds, in short mode for fewer. A failure names its seed.
func seeds(t *testing.T, n uint64, f func(t *testing.T, seed uint64)) {
	if testing.Short() {
		n /= 10
	}
	t.Logf("seeds 1 … %d", n)
	from, to := uint64(1), n
	if *oneSeed != 0 {
		from, to = *oneSeed, *oneSeed
	}
	for seed := from; seed <= to; seed++ {
		if f(t, seed); t.Failed() {
			t.Fatalf("seed %d: replay with -run %s -seed %d", seed, t.Name(), seed)
		}
	}
}

func randomSizes(w uint64) sizes {
	s := sizes{nodes: 1 + int(w%3), tp: 1 + int(w/3%2), loss: 0.3 * float64(w%7) / 6, double: 0.3 * float64(w%5) / 4, stall: 30 * time.Second}
	s.engines = s.nodes + int(w/7%3)
	s.delay = []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 150 * time.Millisecond}[w%4]
	return s
}

// TestRandomRuns: under a network that loses, doubles, delays and reorders, no step is run but by the plan that all hold (S1), steps
// are in order and nobody is left alone in one (S2), every request ends once (S3), an end that nobody foresees wastes a step at
// most, an abort two (W), and at last all have drained and nothing waits (L). The letters are those of the rules' model.
func TestRandomRuns(t *testing.T) {
	steps, resent := 0, false
	seeds(t, 3000, func(t *testing.T, seed uint64) {
		w := newWorld(seed, randomSizes(seed))
		aborts := seed%2 == 0
		for range 1 + w.rand.IntN(12) {
			w.request(aborts)
		}
		for _, x := range w.engines {
			w.after(w.between(0, 8*time.Second), func() { x.draining = true; x.goOn() })
		}
		w.run(10 * time.Minute)
		for _, b := range w.broken {
			t.Error(b)
		}
		if err := w.resting(); err != nil {
			t.Errorf("L after %s: %v", w.now, err)
		}
		if w.wasted > w.mayWaste || !aborts && w.mostIdle > 1 {
			t.Errorf("W %d steps had no real row, %d may; at most %d in a row", w.wasted, w.mayWaste, w.mostIdle)
		}
		for _, n := range w.nodes {
			if n.ended != nil {
				t.Errorf("node %s: epoch ended without a fault: %v", n.name, n.ended)
			}
		}
		for _, x := range w.engines {
			if x.last == nil || x.last.Action != actors.Park || !x.last.Drain[x.id] {
				t.Errorf("engine %d has not drained: last plan %+v", x.id, x.last)
			}
		}
		steps += w.steps
		resent = resent || w.coordinator.resent > 0
	})
	if *oneSeed == 0 && (steps == 0 || !resent) {
		t.Errorf("%d steps, something resent: %v: the runs try nothing", steps, resent)
	}
}

// request adds a request that arrives some time.
func (w *world) request(aborts bool) {
	x := w.engines[w.rand.IntN(len(w.engines))]
	r := &simRequest{length: 1 + w.rand.IntN(8)}
	if w.rand.IntN(2) == 0 {
		r.surprise = 1 + w.rand.IntN(r.length)
		w.mayWaste++
	}
	w.after(w.between(0, 10*time.Second), func() {
		if x.over {
			return
		}
		x.requests = append(x.requests, r)
		x.goOn()
		if aborts && w.rand.IntN(2) == 0 {
			w.after(w.between(0, 100*time.Millisecond), func() {
				if !r.ended {
					w.mayWaste += 2
					x.end(r)
				}
			})
		}
	})
}

// TestRandomFaults: whatever fails, every living node hears of it with the cause, ends its requests and waits for nothing.
func TestRandomFaults(t *testing.T) {
	kinds := map[string]int{}
	seeds(t, 1500, func(t *testing.T, seed uint64) {
		s := randomSizes(seed)
		s.nodes, s.loss, s.delay, s.stall = s.nodes+1, s.loss/6, min(s.delay, 20*time.Millisecond), 3*time.Second
		s.engines++
		w := newWorld(seed, s)
		bad := w.engines[w.rand.IntN(len(w.engines))]
		kind := []string{"hangs", "fails", "dies"}[seed%3]
		kinds[kind]++
		at := 1 + uint64(w.rand.IntN(10))
		switch kind {
		case "hangs":
			bad.hang = at
		case "fails":
			bad.breakIn = at
		case "dies":
			w.after(w.between(0, time.Second), func() { bad.node.dead = true })
		}
		for range 40 { // more than enough to reach the fault, and to notice it
			w.request(false)
		}
		w.run(10 * time.Minute)
		for _, b := range w.broken {
			t.Error(b)
		}
		if err := w.resting(); err != nil {
			t.Errorf("L after %s: %v", w.now, err)
		}
		for _, n := range w.nodes {
			if n.dead {
				continue
			}
			var f *actors.Failure
			switch {
			case !errors.As(n.ended, &f):
				t.Errorf("%s of engine %d in step %d, node %s is told %v", kind, bad.id, at, n.name, n.ended)
			case f.Node != bad.node.name, kind != "dies" && f.Rank != bad.id*s.tp, kind != "dies" && f.Op != "attention":
				t.Errorf("%s of engine %d on node %s in step %d: node %s is told %v", kind, bad.id, bad.node.name, at, n.name, n.ended)
			case !n.aborted:
				t.Errorf("node %s has not aborted", n.name)
			}
		}
	})
	if *oneSeed == 0 && len(kinds) != 3 {
		t.Errorf("only %v were tried", kinds)
	}
}

// TestRandomEnds: a coordinator that leaves, or is lost, at any time: every other node hears of it, or notes its silence, as soon as it
// waits for something; all requests end, and nobody waits for ever.
func TestRandomEnds(t *testing.T) {
	kinds := map[string]int{}
	seeds(t, 1500, func(t *testing.T, seed uint64) {
		s := randomSizes(seed)
		s.nodes, s.loss, s.delay, s.stall = s.nodes+1, s.loss/6, min(s.delay, 20*time.Millisecond), 3*time.Second
		s.engines++
		w := newWorld(seed, s)
		kind, want := "is lost", "no answer of the coordinator for 9"
		if seed%2 == 0 {
			kind, want = "leaves", "node n0 has closed"
		}
		kinds[kind]++
		w.after(w.between(time.Second, 6*time.Second), func() {
			if slices.ContainsFunc(w.nodes, func(n *simNode) bool { return !n.up }) {
				return // who starts has a limit of its own
			}
			if kind == "is lost" {
				w.lost = true
				return
			}
			w.coordinator.leave(w.now, want)
			w.settleCoordinator()
			w.after(farewell+100*time.Millisecond, func() {
				if !w.coordinator.left(w.now) {
					t.Errorf("the coordinator has not left %s after the end", farewell)
				}
				w.lost = true
			})
		})
		for range 40 { // so that all nodes want something
			w.request(false)
		}
		w.run(10 * time.Minute)
		for _, b := range w.broken {
			t.Error(b)
		}
		if err := w.resting(); err != nil {
			t.Errorf("L after %s: %v", w.now, err)
		}
		for _, n := range w.nodes {
			switch {
			case w.lost && n.ended == nil && slices.ContainsFunc(n.engines, func(x *simEngine) bool { return len(x.requests) > 0 }):
				t.Errorf("the coordinator %s: node %s does not know it", kind, n.name)
			case n.ended != nil && (!n.aborted || !strings.Contains(n.ended.Error(), want) && !strings.Contains(n.ended.Error(), "no answer of the coordinator")):
				t.Errorf("the coordinator %s: node %s is told %v, aborted %v", kind, n.name, n.ended, n.aborted)
			}
		}
	})
	if *oneSeed == 0 && len(kinds) != 2 {
		t.Errorf("only %v were tried", kinds)
	}
}
