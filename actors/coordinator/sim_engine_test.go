package coordinator

import (
	"slices"
	"time"

	"github.com/moerack/moerack/actors"
	v1 "github.com/moerack/moerack/messages/v1"
)

// simEngine is a scheduler and its ranks as the protocol sees them. It votes one step ahead.
type simEngine struct {
	w        *world
	id       int
	node     *simNode
	requests []*simRequest
	draining bool

	last    *actors.Plan // nil before the first Call
	called  uint64
	voted   uint64
	woken   bool // a Wake is out
	done    uint64
	batches map[uint64][]*simRequest
	plans   []*actors.Plan // to run, in order
	over    bool

	at      position // of its ranks
	hang    uint64   // step in which it never gets to the meeting
	breakIn uint64   // step in which it fails
}

type simRequest struct {
	tokens, length int
	surprise       int // token with which it ends unforeseen, 0: none
	ended          bool
}

// meeting is a step in the data plane: nobody finishes before all have come.
type meeting struct {
	come map[int]bool
	real bool
	left int
}

func (x *simEngine) ranks() []uint32 {
	var out []uint32
	for r := range x.w.sizes.tp {
		out = append(out, uint32(x.id*x.w.sizes.tp+r))
	}
	return out
}

func (x *simEngine) positions() []*v1.RankProgress {
	var out []*v1.RankProgress
	for _, r := range x.ranks() {
		out = append(out, &v1.RankProgress{
			Rank: r, Step: x.at.step, Index: uint32(x.at.index), Op: x.at.op, Layer: int32(x.at.layer), Running: x.at.op != "",
			Waiting: x.at.waiting, Moves: x.at.moves,
		})
	}
	return out
}

func (x *simEngine) move(step uint64, index int, op string, waiting bool) {
	x.at = position{step: step, index: index, op: op, waiting: waiting, moves: x.at.moves + 1}
}

func (x *simEngine) take(message any) {
	switch m := message.(type) {
	case *actors.Called:
		if x.last == nil {
			x.last = &actors.Plan{Epoch: m.Epoch, Step: m.Step - 1}
			x.done = m.Step - 1
		}
		if m.Step == x.last.Step+1 {
			x.called = m.Step
		}
	case *actors.Planned:
		x.planned(m.Plan)
	case *actors.EpochEnded:
		x.over = true
		for _, r := range x.requests {
			if !r.ended {
				x.end(r)
			}
		}
	}
	x.goOn()
}

func (x *simEngine) planned(p *actors.Plan) {
	switch {
	case p.Step != x.last.Step+1:
		x.w.fault("S2 engine %d, whose last plan is %d, is given %d", x.id, x.last.Step, p.Step)
		return
	case x.voted != p.Step:
		x.w.fault("S1 engine %d is given plan %d without having voted for it", x.id, p.Step)
		return
	case p.Rows[x.id] != len(x.batches[p.Step]):
		x.w.fault("S1 plan %d gives engine %d %d rows, its batch has %d", p.Step, x.id, p.Rows[x.id], len(x.batches[p.Step]))
		return
	}
	x.w.accepted(p)
	x.last, x.woken = p, false
	if p.Action == actors.Run {
		x.plans = append(x.plans, p)
	} else {
		x.w.idleSteps = 0
		delete(x.batches, p.Step)
		x.voted = 0
	}
}

// goOn does all that may be done now.
func (x *simEngine) goOn() {
	if x.over || x.node.dead || x.last == nil {
		return
	}
	if x.at.op == "" && len(x.plans) > 0 {
		x.enter(x.plans[0])
	}
	if x.last.Action != actors.Run && x.at.op == "" {
		x.done = x.last.Step // a step that is not run is behind
	}
	next := x.last.Step + 1
	if x.voted != next && (x.last.Action == actors.Run || x.called == next) && x.done+2 >= next {
		x.vote(next)
	}
	if x.last.Action == actors.Park && x.called != next && !x.woken && (x.work() || x.draining && !x.last.Drain[x.id]) {
		x.woken = true
		x.node.core.OnWake(x.w.now, &actors.Wake{Engine: x.id, Epoch: x.last.Epoch})
		x.w.settle(x.node)
	}
}

func (x *simEngine) work() bool {
	return slices.ContainsFunc(x.requests, func(r *simRequest) bool { return !r.ended })
}

// vote commits to a batch: a row for every request that may go on after the steps under way.
func (x *simEngine) vote(step uint64) {
	var batch []*simRequest
	for _, r := range x.requests {
		under := 0
		for _, b := range x.batches {
			if slices.Contains(b, r) {
				under++
			}
		}
		if !r.ended && r.tokens+under < r.length {
			batch = append(batch, r)
		}
	}
	x.batches[step], x.voted = batch, step
	x.node.core.OnVote(x.w.now, &actors.Vote{Epoch: x.last.Epoch, Step: step, Engine: x.id, Rows: len(batch), Drain: x.draining})
	if x.w.rand.IntN(4) == 0 { // one that was restarted votes again; the first vote counts
		x.node.core.OnVote(x.w.now, &actors.Vote{Epoch: x.last.Epoch, Step: step, Engine: x.id, Rows: len(batch) + 1})
	}
	x.w.settle(x.node)
}

// enter begins a step: it computes, then meets the others.
func (x *simEngine) enter(p *actors.Plan) {
	w := x.w
	x.plans = x.plans[1:]
	if p.Step != x.done+1 && x.done != 0 {
		for s := x.done + 1; s < p.Step; s++ {
			if m := w.meetings[s]; m != nil {
				w.fault("S2 engine %d passes step %d by, in which others are", x.id, s)
			}
		}
	}
	m := w.meetings[p.Step]
	if m == nil {
		m = &meeting{come: map[int]bool{}, left: len(p.Members)}
		w.meetings[p.Step] = m
	}
	x.move(p.Step, 0, "attention", false)
	if x.hang != 0 && p.Step >= x.hang {
		return
	}
	if x.breakIn != 0 && p.Step >= x.breakIn {
		x.node.core.OnBroken(w.now, &actors.Broken{Epoch: p.Epoch, Failure: &actors.Failure{Rank: x.id * w.sizes.tp, Node: x.node.name, Step: p.Step, Op: "attention"}})
		w.settle(x.node)
		return
	}
	long := 0
	if w.rand.IntN(20) == 0 {
		long = w.rand.IntN(10) // longer than the stall time of a fault
	}
	x.compute(p, m, long)
}

// compute goes through operations of up to half a second, then to the meeting.
func (x *simEngine) compute(p *actors.Plan, m *meeting, operations int) {
	w := x.w
	most := 30 * time.Millisecond
	if operations > 0 {
		most = 500 * time.Millisecond
	}
	w.after(w.between(0, most), func() {
		if x.over || x.node.dead {
			return
		}
		if operations > 0 {
			x.move(p.Step, 0, "attention", false)
			x.compute(p, m, operations-1)
			return
		}
		x.move(p.Step, 1, "a2e", true)
		m.come[x.id] = true
		if len(m.come) < len(p.Members) {
			return
		}
		for _, e := range p.Members {
			w.after(w.between(0, 5*time.Millisecond), func() { w.engines[e].finish(p.Step, m) })
		}
	})
}

// finish ends a step: every row is a token, but those whose request has ended.
func (x *simEngine) finish(step uint64, m *meeting) {
	if x.over || x.node.dead {
		return
	}
	for _, r := range x.batches[step] {
		if r.ended {
			continue
		}
		m.real = true
		if r.tokens++; r.tokens == r.length || r.tokens == r.surprise {
			x.end(r)
		}
	}
	delete(x.batches, step)
	x.done = step
	x.move(step, 0, "", false)
	if m.left--; m.left == 0 {
		x.w.finished(m)
	}
	x.goOn()
}

func (x *simEngine) end(r *simRequest) {
	if r.ended {
		x.w.fault("S3 a request of engine %d ends twice", x.id)
	}
	if r.ended = true; r.tokens > r.length {
		x.w.fault("S3 a request of engine %d has %d tokens of %d", x.id, r.tokens, r.length)
	}
}

// finished counts a step that all have done.
func (w *world) finished(m *meeting) {
	w.steps++
	if w.idleSteps++; m.real {
		w.idleSteps = 0
	} else {
		w.wasted++
	}
	w.mostIdle = max(w.mostIdle, w.idleSteps)
}
