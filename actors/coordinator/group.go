package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moerack/moerack/actors"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

// term is the number of the leadership: one coordinator leads for the whole life of a cluster.
const term = 1

// maxVerdicts bounds the copies of a verdict for a node that does not acknowledge it.
const maxVerdicts = 20

// assureAfter is how long a node that votes or reports hears nothing of a coordinator that waits for others.
const assureAfter = time.Second

// state is where a group is in its life.
type state uint8

const (
	gathering state = iota // until all ranks have joined their communicators
	stepping               // votes and plans
	ended                  // by a verdict; only the verdict is told
)

// group is the pure core of one group: messages and time in, messages out. It has no clock: now is the time since any moment
// that does not change. The caller sends what take returns, and calls tick when next says so.
type group struct {
	name     string
	tp       int
	own      string // node that has the coordinator
	exchange topology.Exchange
	nodes    []string       // that have engines of the group, ascending
	nodeOf   map[int]string // by engine
	first    []int          // engines of the first epoch, ascending

	state      state
	epoch      uint64
	members    []int        // engines of the epoch, ascending
	prev, last *actors.Plan // the two plans that a node can lack; prev is nil in a new epoch
	ready      map[int]bool // by rank; while gathering
	votes      map[int]actors.Vote
	call       actors.Repeat            // on: a Call waits for votes
	planned    time.Duration            // when the last plan was made
	assured    map[string]time.Duration // when a node was last shown that the coordinator lives
	judge      judge
	cause      *v1.Failure     // why the epoch before ended
	heeded     map[string]bool // nodes that have acknowledged the verdict
	verdict    actors.Repeat   // on: the verdict waits for acknowledgements
	out        []output
	resent     int64 // copies made since the shell has counted them
	logged     bool  // the shell has logged the verdict
	leaving    bool  // the coordinator ends
	until      time.Duration
}

// output is a message that a group sends: one of call, plan and mute is set.
type output struct {
	call *v1.Call // to all nodes
	plan *actors.Plan
	node string // that the plan is for, "" for all
	mute error  // to the coordinator's own node, past the bus: the verdict may reach nobody
}

// newGroup makes the core of a group whose ranks have not joined yet. nodeOf names the node of each engine, own the one that has the
// coordinator.
func newGroup(g topology.Group, nodeOf map[int]string, own string, tp int, exchange topology.Exchange, stall time.Duration) *group {
	c := &group{
		name: g.Name, tp: tp, own: own, exchange: exchange, nodeOf: nodeOf, first: g.Engines, epoch: 1, members: g.Engines,
		ready: map[int]bool{}, votes: map[int]actors.Vote{}, assured: map[string]time.Duration{},
		judge: newJudge(g.Engines, nodeOf, own, tp, stall),
	}
	for _, e := range g.Engines {
		if n := nodeOf[e]; !slices.Contains(c.nodes, n) {
			c.nodes = append(c.nodes, n)
		}
	}
	slices.Sort(c.nodes)
	c.last = actors.Beginning(c.name, term, c.epoch, 1, 1, c.members)
	return c
}

// take returns what is to be sent, and forgets it.
func (g *group) take() []output {
	out := g.out
	g.out = nil
	return out
}

// stale answers a node that speaks of an older epoch, and reports whether the message is to be dropped.
func (g *group) stale(node string, epoch uint64) bool {
	if epoch < g.epoch && g.knows(node) {
		g.resent++
		g.sendCall()
	}
	return epoch != g.epoch || !g.knows(node)
}

func (g *group) knows(node string) bool { return slices.Contains(g.nodes, node) }

// onReady takes that ranks of a node have joined. When all have, the first step is called for.
func (g *group) onReady(now time.Duration, m *v1.Ready) {
	if g.stale(m.Node, m.Epoch) || g.state == ended {
		return
	}
	if m.Failure != nil {
		g.endEpoch(now, m.Failure, nil)
		return
	}
	if g.state != gathering {
		return
	}
	for _, r := range m.Ranks {
		if e := int(r) / g.tp; g.nodeOf[e] == m.Node && slices.Contains(g.members, e) {
			g.ready[int(r)] = true
		}
	}
	if len(g.ready) == len(g.members)*g.tp {
		g.state = stepping
		g.callAll(now)
	}
}

// onVotes takes the votes of a node's engines.
func (g *group) onVotes(now time.Duration, m *v1.Votes) {
	if g.stale(m.Node, m.Epoch) || g.state != stepping {
		return
	}
	g.judge.hear(now, m.Node)
	next := g.last.Step + 1
	switch {
	case m.Step < next:
		g.resendPlan(m.Node, m.Step)
		return
	case m.Step > next:
		return // no such vote can be: it would need plan next
	}
	fresh := false
	for _, v := range m.Votes {
		e := int(v.Engine)
		if !slices.Contains(g.members, e) || g.nodeOf[e] != m.Node {
			continue
		}
		if _, voted := g.votes[e]; voted {
			continue // a commitment does not change
		}
		fresh = true
		g.votes[e] = actors.Vote{Epoch: m.Epoch, Step: m.Step, Engine: e, Rows: int(v.Rows), Drain: v.Drain, Queue: int(v.Queue)}
	}
	switch {
	case len(g.votes) == len(g.members):
		g.plan(now)
	case g.last.Action != actors.Run:
		g.nudge(now) // a vote after a park counts as a Wake
	case !fresh:
		g.assure(now, m.Node)
	}
}

// assure shows a node, whose votes are there or whose ranks are in the step, that the coordinator lives and waits: by a copy of the last
// plan, which changes nothing. While a Call is out, that shows it.
func (g *group) assure(now time.Duration, node string) {
	if now-max(g.planned, g.assured[node]) >= assureAfter {
		g.assured[node] = now
		g.resent++
		g.out = append(g.out, output{node: node, plan: g.last})
	}
}

// resendPlan answers a vote for a step that is planned.
func (g *group) resendPlan(node string, step uint64) {
	p := g.last
	if g.prev != nil && g.prev.Step == step {
		p = g.prev
	}
	if p.Action != 0 {
		g.resent++
		g.out = append(g.out, output{node: node, plan: p})
	}
}

// plan makes the plan that all votes have come for.
func (g *group) plan(now time.Duration) {
	votes := make([]actors.Vote, 0, len(g.votes))
	for _, e := range g.members {
		votes = append(votes, g.votes[e])
	}
	p, err := actors.MakePlan(g.last, votes, g.tp, g.exchange)
	if err != nil {
		panic(fmt.Sprintf("coordinator: invariant \"one vote of each member, for the next step\" broken: %v", err))
	}
	g.prev, g.last = g.last, p
	if g.prev.Action == 0 {
		g.prev = nil
	}
	clear(g.votes)
	g.planned = now
	g.call.Stop()
	if p.Action == actors.Run {
		g.judge.begin(now, p.Step)
	} else {
		g.judge.park(now)
	}
	g.out = append(g.out, output{plan: p})
}

// onWake takes that a parked engine wants a step.
func (g *group) onWake(now time.Duration, m *v1.Wake) {
	if g.stale(m.Node, m.Epoch) || g.state != stepping {
		return
	}
	if !g.call.On() {
		g.nudge(now)
		return
	}
	if g.lacksVotesOf(m.Node) {
		g.resent++
		g.sendCall()
	}
}

// nudge calls unless votes come by themselves, as they do after a step that is run, or a Call is out.
func (g *group) nudge(now time.Duration) {
	if g.last.Action != actors.Run && !g.call.On() {
		g.callAll(now)
	}
}

func (g *group) callAll(now time.Duration) {
	g.call.Start(now)
	g.judge.call(now, g.last.Step+1)
	g.sendCall()
}

func (g *group) sendCall() {
	g.out = append(g.out, output{call: &v1.Call{
		Group: g.name, Term: term, Epoch: g.epoch, Wave: g.last.Wave + 1, Step: g.last.Step + 1, Members: numbers(g.members), Cause: g.cause,
	}})
}

func (g *group) lacksVotesOf(node string) bool {
	for _, e := range g.members {
		if _, voted := g.votes[e]; !voted && g.nodeOf[e] == node {
			return true
		}
	}
	return false
}

// onProgress takes where a node's ranks are.
func (g *group) onProgress(now time.Duration, m *v1.Progress) {
	if g.stale(m.Node, m.Epoch) || g.state != stepping {
		return
	}
	g.judge.progress(now, m)
	if g.last.Action == actors.Run {
		g.assure(now, m.Node)
	}
}

// onDone takes that a rank failed or a node leaves, or that a node has heeded the verdict: then it is of the new epoch and of step 0.
func (g *group) onDone(now time.Duration, m *v1.Done) {
	if g.stale(m.Node, m.Epoch) {
		return
	}
	switch {
	case g.state != ended && m.Failure != nil && m.Failure.Node == "": // no rank is to blame
		g.endEpoch(now, m.Failure, g.judge.enginesOf(m.Node))
	case g.state != ended && m.Failure != nil:
		g.endEpoch(now, m.Failure, nil)
	case g.state == ended && m.Step == 0:
		g.heeded[m.Node] = true
		if len(g.heeded) == len(g.nodes) {
			g.verdict.Stop()
		}
	}
}

// endEpoch is the verdict: the next epoch has no engine of the failed rank, nor those of dead. It is told to all nodes of the old
// epoch, which end their requests with the cause. Nobody votes in the new epoch. A cause without a node blames no rank.
func (g *group) endEpoch(now time.Duration, cause *v1.Failure, dead []int) {
	members := make([]int, 0, len(g.members))
	for _, e := range g.members {
		if (cause.Node == "" || e != int(cause.Rank)/g.tp) && !slices.Contains(dead, e) {
			members = append(members, e)
		}
	}
	g.state, g.cause, g.members = ended, cause, members
	g.epoch++
	g.last = actors.Beginning(g.name, term, g.epoch, g.last.Wave+1, g.last.Step+1, members)
	g.prev = nil
	clear(g.votes)
	g.call.Stop()
	g.judge.end()
	g.heeded = map[string]bool{}
	g.verdict.Start(now)
	g.sendCall()
}

// tick does what is due.
func (g *group) tick(now time.Duration) {
	if g.call.Due(now) || g.verdict.Due(now) {
		g.resent++
		g.sendCall()
		if g.leaving {
			g.verdict.Start(now) // there is little time: the copies come as fast as at first
		}
	}
	if g.verdict.Copies() >= maxVerdicts || g.leaving && now >= g.until {
		g.verdict.Stop()
	}
	if g.state == stepping {
		if cause, dead := g.judge.judge(now, g.missing()); cause != nil {
			g.endEpoch(now, cause, dead)
			if cause.Node == "" {
				g.out = append(g.out, output{mute: errors.New(cause.Text)})
			}
		}
	}
}

// missing returns the engines that have not voted for the next step, ascending.
func (g *group) missing() []int {
	var missing []int
	for _, e := range g.members {
		if _, voted := g.votes[e]; !voted {
			missing = append(missing, e)
		}
	}
	return missing
}

// next returns when tick is wanted; ok is false while nothing is waited for: a parked group, or one whose ranks still join.
func (g *group) next() (at time.Duration, ok bool) {
	for _, due := range []func() (time.Duration, bool){g.call.Next, g.verdict.Next, g.judge.next} {
		if t, on := due(); on && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

func numbers(engines []int) []uint32 {
	out := make([]uint32, len(engines))
	for i, e := range engines {
		out[i] = uint32(e)
	}
	return out
}
