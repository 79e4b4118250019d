package coordinator

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/agent"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

// world is a group as a simulation: the cores of the coordinator and of all nodes' agents, simple schedulers and ranks, a virtual
// clock and a network that loses, doubles, delays and reorders. Everything follows from the seed.
type world struct {
	rand   *rand.Rand
	sizes  sizes
	now    time.Duration
	events events
	serial int

	coordinator *group
	coordTick   time.Duration
	lost        bool // the coordinator is
	nodes       []*simNode
	engines     []*simEngine
	meetings    map[uint64]*meeting // by step
	plans       map[uint64]uint64   // hash by step, of the plans that nodes accepted
	broken      []string            // invariants
	idleSteps   int                 // steps without a real row, in a row
	mostIdle    int
	wasted      int // steps without a real row
	mayWaste    int // what ends that nobody foresees may cost
	steps       int
}

// sizes are of one world.
type sizes struct {
	nodes, engines, tp int
	loss, double       float64
	delay              time.Duration // most of most messages; one in 20 takes up to ten times as long
	stall              time.Duration
}

type event struct {
	at     time.Duration
	serial int
	do     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].serial < e[j].serial
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

type simNode struct {
	name    string
	core    *agent.Core
	tick    time.Duration // that is scheduled
	dead    bool
	up      bool
	ended   error
	aborted bool
	engines []*simEngine
}

func newWorld(seed uint64, s sizes) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 1)), sizes: s, meetings: map[uint64]*meeting{}, plans: map[uint64]uint64{}, coordTick: -1}
	g := topology.Group{Name: "ep"}
	nodeOf := map[int]string{}
	for n := range s.nodes {
		w.nodes = append(w.nodes, &simNode{name: fmt.Sprintf("n%d", n), tick: -1})
	}
	for e := range s.engines {
		n := w.nodes[e*s.nodes/s.engines]
		x := &simEngine{w: w, id: e, node: n, batches: map[uint64][]*simRequest{}}
		n.engines, w.engines = append(n.engines, x), append(w.engines, x)
		g.Engines = append(g.Engines, e)
		nodeOf[e] = n.name
	}
	w.coordinator = newGroup(g, nodeOf, "n0", s.tp, topology.AllGather, s.stall)
	for _, n := range w.nodes {
		var ids []int
		for _, x := range n.engines {
			ids = append(ids, x.id)
		}
		n.core = agent.NewCore(n.name, "ep", ids, s.stall)
		w.ready(n)
	}
	return w
}

// ready repeats that a node's ranks have joined until its first plan, as its expert group does.
func (w *world) ready(n *simNode) {
	if n.up || n.dead || n.ended != nil {
		return
	}
	m := &v1.Ready{Group: "ep", Epoch: 1, Node: n.name}
	for _, x := range n.engines {
		m.Ranks = append(m.Ranks, x.ranks()...)
	}
	w.toCoordinator(m)
	w.after(100*time.Millisecond, func() { w.ready(n) })
}

func (w *world) fault(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf("at %s: ", w.now)+fmt.Sprintf(format, args...))
}

func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.events, event{w.now + d, w.serial, do})
}

func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rand.Int64N(int64(to-from)+1))
}

// run plays events until none is left or the time is over.
func (w *world) run(until time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= until && len(w.broken) == 0 {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
}

// transmit delivers a message never, once or twice.
func (w *world) transmit(deliver func()) {
	copies := 1
	if w.rand.Float64() < w.sizes.double {
		copies = 2
	}
	for range copies {
		if w.rand.Float64() < w.sizes.loss {
			continue
		}
		d := w.between(0, w.sizes.delay)
		if w.rand.IntN(20) == 0 {
			d *= 10
		}
		w.after(d, deliver)
	}
}

func (w *world) toCoordinator(m any) {
	w.transmit(func() {
		if w.lost {
			return
		}
		g := w.coordinator
		switch m := m.(type) {
		case *v1.Ready:
			g.onReady(w.now, m)
		case *v1.Votes:
			g.onVotes(w.now, m)
		case *v1.Wake:
			g.onWake(w.now, m)
		case *v1.Done:
			g.onDone(w.now, m)
		case *v1.Progress:
			g.onProgress(w.now, m)
		default:
			w.fault("the coordinator is sent %T", m)
		}
		w.settleCoordinator()
	})
}

// settleCoordinator sends what the coordinator's core says and sets its timer.
func (w *world) settleCoordinator() {
	for _, o := range w.coordinator.take() {
		for _, n := range w.nodes {
			if o.call == nil && o.node != "" && o.node != n.name {
				continue
			}
			w.transmit(func() {
				if n.dead {
					return
				}
				if o.call != nil {
					n.core.OnCall(w.now, o.call)
				} else {
					n.core.OnPlan(w.now, o.plan)
				}
				w.settle(n)
			})
		}
	}
	w.timer(&w.coordTick, w.coordinator.next, func() {
		if w.lost {
			return
		}
		w.coordinator.tick(w.now)
		w.settleCoordinator()
	})
}

// timer schedules a tick, unless one that is as early is scheduled.
func (w *world) timer(set *time.Duration, next func() (time.Duration, bool), tick func()) {
	at, ok := next()
	if !ok || *set >= 0 && *set <= at {
		return
	}
	at = max(at, w.now)
	*set = at
	w.after(at-w.now, func() {
		if *set == at {
			*set = -1
			tick()
		}
	})
}

// settle carries out what a node's core says and sets its timer.
func (w *world) settle(n *simNode) {
	if n.dead {
		return
	}
	for effects := n.core.Take(); len(effects) > 0; effects = n.core.Take() {
		for _, effect := range effects {
			w.carryOut(n, effect)
		}
	}
	w.timer(&n.tick, n.core.Next, func() {
		n.core.Tick(w.now)
		w.settle(n)
	})
}

func (w *world) carryOut(n *simNode, effect any) {
	switch e := effect.(type) {
	case agent.Report:
		m := &v1.Progress{Group: "ep", Term: e.Term, Epoch: e.Epoch, Node: n.name}
		through := true
		for _, x := range n.engines {
			m.Ranks = append(m.Ranks, x.positions()...)
			through = through && x.at.op == "" && x.done >= e.Step
		}
		n.core.Reported(e, through)
		w.toCoordinator(m)
	case agent.ForEngine:
		w.engines[e.Engine].take(e.Message)
	case agent.Refused:
		w.fault("S1 node %s: %v", n.name, e.Reason)
	case *actors.AbortEpoch:
		n.aborted = true
	case *actors.GroupUp:
		n.up = true
	case *actors.GroupEnded:
		n.ended = e.Err
	default:
		w.toCoordinator(e)
	}
}

// accepted checks that no two nodes hold different plans for a step.
func (w *world) accepted(p *actors.Plan) {
	if h, ok := w.plans[p.Step]; ok && h != p.Hash {
		w.fault("S1 two plans for step %d", p.Step)
	}
	w.plans[p.Step] = p.Hash
}

// resting reports whether nobody waits for anything: all requests have ended and no core has a timer.
func (w *world) resting() error {
	if _, on := w.coordinator.next(); on && !w.lost {
		return fmt.Errorf("the coordinator waits")
	}
	for _, n := range w.nodes {
		if _, on := n.core.Next(); on && !n.dead {
			return fmt.Errorf("node %s waits", n.name)
		}
	}
	for _, x := range w.engines {
		if i := slices.IndexFunc(x.requests, func(r *simRequest) bool { return !r.ended }); i >= 0 && !x.node.dead && x.node.ended == nil {
			return fmt.Errorf("request %d of engine %d has not ended", i, x.id)
		}
	}
	return nil
}
