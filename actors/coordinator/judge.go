package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/moerack/moerack/messages/v1"
)

// judge finds out who holds up a group: which rank of a step that runs makes no progress, or whose vote does not come. It names
// the one that the others wait for, not those who wait.
//
// Nodes send heartbeats until the plan after a step that is run, and as long as one of their ranks is in it: votes are given ahead, so
// a step can still run when the next plan is a park. A node whose heartbeats stop counts as one that makes no progress, but not
// while the group is parked: then it is done, or its loss shows at the next Call.
//
// Where all nodes fall silent at once, that of the coordinator too, it is the bus that is silent: nobody is judged, until the bus itself
// is given up.
type judge struct {
	tp      int
	own     string // node whose heartbeats show that the bus carries them
	stall   time.Duration
	nodeOf  map[int]string // by engine
	members []int

	mode  mode
	step  uint64        // the last that is run, 0 if none was
	want  uint64        // step that votes are awaited for
	since time.Duration // the plan or the Call
	due   time.Duration // next look, unless idle
	deaf  time.Duration // nobody is judged before this time
	away  time.Duration // nor the bus before this one
	heard map[string]time.Duration
	ranks map[int]*position
}

// mode is what is owed.
type mode uint8

const (
	idle    mode = iota // nothing
	running             // the step, and votes for the next one
	parked              // the step, by ranks that are still in it
	calling             // votes for the next step, and before them the last one
)

// position is where a rank was when it was last heard of.
type position struct {
	rank    int
	node    string
	step    uint64 // that it is in, or will be in next
	index   int    // in the step's list; −1 before its first operation
	op      string
	layer   int
	waiting bool
	moves   uint64
	since   time.Duration // when it was seen to have moved
}

const (
	longestInterval = 200 * time.Millisecond // between heartbeats
	longestLook     = time.Second            // between looks
	shortestSilence = 5 * time.Second        // of the bus, before it is given up
	afterDeafness   = 2 * time.Second        // that the bus must be back before silence means something: what was lost is repeated after a second at most
)

func newJudge(members []int, nodeOf map[int]string, own string, tp int, stall time.Duration) judge {
	j := judge{tp: tp, own: own, stall: stall, nodeOf: nodeOf, members: members, heard: map[string]time.Duration{}, ranks: map[int]*position{}}
	for _, e := range members {
		for r := e * tp; r < (e+1)*tp; r++ {
			j.ranks[r] = &position{rank: r, node: nodeOf[e], index: -1, layer: -1}
		}
	}
	return j
}

// interval is the time between two heartbeats of a node.
func (j *judge) interval() time.Duration { return min(longestInterval, j.stall/6) }

// begin says that all members run a step. That it could be planned is a sign of life of all.
func (j *judge) begin(now time.Duration, step uint64) {
	j.mode, j.step, j.want, j.since, j.due = running, step, step+1, now, now+min(j.stall, longestLook)
	for _, e := range j.members {
		j.heard[j.nodeOf[e]] = now
	}
	for _, p := range j.ranks {
		p.since = now
	}
}

// park says that no step runs after the last one.
func (j *judge) park(now time.Duration) {
	j.mode = idle
	if j.step > 0 {
		j.mode, j.due = parked, now+4*j.interval()
	}
}

// call says that votes for a step are called for. Ranks that are not known to be in the last one have had nothing to do until now.
func (j *judge) call(now time.Duration, step uint64) {
	j.mode, j.want, j.since, j.due = calling, step, now, now+j.interval()
	for _, p := range j.ranks {
		if j.silent(now, p.node) {
			p.since = now
		}
	}
}

// end says that nobody owes anything.
func (j *judge) end() { j.mode = idle }

// deafen says that the judge's own connection is down: what the nodes send does not come.
func (j *judge) deafen(now time.Duration) { j.away = now + afterDeafness }

// hear notes a sign of life of a node.
func (j *judge) hear(now time.Duration, node string) { j.heard[node] = now }

// progress notes where a node's ranks are.
func (j *judge) progress(now time.Duration, m *v1.Progress) {
	j.hear(now, m.Node)
	for _, r := range m.Ranks {
		p := j.ranks[int(r.Rank)]
		if p == nil || p.node != m.Node || r.Moves <= p.moves {
			continue // a stranger, no progress, or an older message
		}
		j.excuse(now, p)
		p.moves, p.since = r.Moves, now
		p.step, p.index, p.op, p.layer, p.waiting = r.Step, int(r.Index), r.Op, int(r.Layer), r.Waiting
		if r.Op == "" || !r.Running {
			p.index, p.op, p.layer, p.waiting = -1, "", -1, false
		}
		if !r.Running {
			p.step++
		}
	}
	if j.mode == idle && slices.ContainsFunc(j.owing(nil), func(p *position) bool { return p.node == m.Node }) {
		j.park(now) // it came late: a rank is still in the step before the park
	}
}

// excuse takes that a rank moves on: those who wait at a later place have waited for it until now. Without this one that
// waited for a long operation would be blamed as soon as that is through, until it is heard of itself.
func (j *judge) excuse(now time.Duration, mover *position) {
	for _, p := range j.ranks {
		if p.waiting && cmp.Or(cmp.Compare(mover.step, p.step), cmp.Compare(mover.index, p.index), compareBool(mover.waiting, p.waiting)) < 0 {
			p.since = now
		}
	}
}

// next returns when to judge; ok is false if nobody owes anything.
func (j *judge) next() (at time.Duration, ok bool) { return j.due, j.mode != idle }

// judge returns who has made no progress for the stall time and is waited for, and the engines that are lost with it; nil if
// there is none yet. missing are the engines whose votes are awaited, if any are.
func (j *judge) judge(now time.Duration, missing []int) (cause *v1.Failure, dead []int) {
	if j.mode == idle || now < j.due {
		return nil, nil
	}
	j.catchUp(now)
	switch {
	case now < j.away:
		j.due = j.away
		return nil, nil
	case j.mute(now):
		return j.nameBus(now), nil
	case now < j.deaf:
		j.due = j.deaf
		return nil, nil
	}
	owing := j.owing(missing)
	live := slices.ContainsFunc(owing, func(p *position) bool { return !j.silent(now, p.node) })
	if j.mode == parked && !live {
		j.mode = idle
		return nil, nil
	}
	if p := j.cause(now, owing); p != nil {
		return j.name(now, p, owing)
	}
	if j.mode != parked && len(owing) == 0 && len(missing) > 0 && now-j.moved() >= j.stall {
		return j.nameMissing(now, missing)
	}
	j.due = j.look(now, owing)
	return nil, nil
}

// catchUp sees to a judge that was itself held up, as a process is that was stopped for a while: what it was sent meanwhile comes first,
// and nobody's time runs while the judge's stands still. After a stop that may have been longer than is known, as it began before the
// look that came late, all have the full stall time again.
func (j *judge) catchUp(now time.Duration) {
	late := now - j.due
	if late <= j.interval() {
		return
	}
	if late >= min(j.stall, longestLook) {
		late = now // all that is older becomes now
	}
	j.deaf = max(j.deaf, now+2*j.interval())
	j.since = min(j.since+late, now)
	for _, p := range j.ranks {
		p.since = min(p.since+late, now)
	}
	for n, at := range j.heard {
		j.heard[n] = min(at+late, now)
	}
}

// mute reports whether the bus carries nothing: of a step that runs all nodes must be heard of, that of the coordinator too.
func (j *judge) mute(now time.Duration) bool {
	own := len(j.enginesOf(j.own)) > 0
	return j.mode == running && own && !slices.ContainsFunc(j.members, func(e int) bool { return !j.lost(now, j.nodeOf[e]) })
}

// nameBus blames the bus, if it has been silent for long enough; nil if not.
func (j *judge) nameBus(now time.Duration) *v1.Failure {
	heard := j.away
	for _, at := range j.heard {
		heard = max(heard, at)
	}
	quiet := now - heard
	if quiet < max(3*j.stall, shortestSilence) {
		after := 2 * j.interval() // when it carries again, what was kept comes first
		if quiet >= time.Second {
			after = afterDeafness
		}
		j.deaf, j.due = now+after, now+j.interval()
		return nil
	}
	return &v1.Failure{Layer: -1, Text: fmt.Sprintf(
		"the bus has not carried a message for %s, not even of node %s, which has the coordinator: look at its server", round(quiet), j.own)}
}

// owing returns the ranks that have not done the step, the furthest behind first, those that compute before those that wait. An
// engine that has voted after a Call has done it, whatever its last heartbeat says.
func (j *judge) owing(missing []int) []*position {
	var owing []*position
	for _, r := range slices.Sorted(maps.Keys(j.ranks)) {
		p := j.ranks[r]
		if p.step <= j.step && j.step > 0 && (j.mode != calling || slices.Contains(missing, r/j.tp)) {
			owing = append(owing, p)
		}
	}
	slices.SortStableFunc(owing, func(a, b *position) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.index, b.index), compareBool(a.waiting, b.waiting))
	})
	return owing
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// cause returns which of the ranks in the order of owing is to blame, nil if none is yet: the first that is stalled on a lost
// node, else the first that is stalled. Whoever waits while somebody behind it still moves has no part in it.
func (j *judge) cause(now time.Duration, owing []*position) *position {
	var first *position
	moving := false // somebody further behind
	for _, p := range owing {
		switch {
		case now-p.since < j.stall:
			moving = true
		case j.lost(now, p.node):
			return p
		case first == nil && !(p.waiting && moving):
			first = p
		}
	}
	return first
}

// silent reports whether a node's heartbeats have stopped.
func (j *judge) silent(now time.Duration, node string) bool {
	return now-j.heard[node] > 3*j.interval()
}

// lost reports whether a node's heartbeats have stopped for so long that it counts for more than where its ranks are.
func (j *judge) lost(now time.Duration, node string) bool {
	return now-j.heard[node] > max(3*j.interval(), j.stall/4)
}

// moved returns when the last rank was seen to move.
func (j *judge) moved() time.Duration {
	at := j.since
	for _, p := range j.ranks {
		at = max(at, p.since)
	}
	return at
}

// look returns when to judge again: when the next rank may be stalled.
func (j *judge) look(now time.Duration, owing []*position) time.Duration {
	soonest := j.moved()
	for _, p := range owing {
		if now-p.since < j.stall {
			soonest = min(soonest, p.since)
		}
	}
	return min(max(now+j.interval(), soonest+j.stall), now+longestLook)
}

func (j *judge) name(now time.Duration, p *position, owing []*position) (*v1.Failure, []int) {
	f := &v1.Failure{Rank: uint32(p.rank), Node: p.node, Step: p.step, Op: p.op, Layer: int32(p.layer)}
	if j.lost(now, p.node) {
		f.Text = fmt.Sprintf("no sign of life of node %s for %s, nor progress of its rank for %s", p.node, round(now-j.heard[p.node]), round(now-p.since))
		return f, j.enginesOf(p.node)
	}
	f.Text = fmt.Sprintf("no progress for %s", round(now-p.since))
	var same []string
	for _, o := range owing {
		if o.rank != p.rank && o.step == p.step && o.index == p.index && o.waiting == p.waiting && now-o.since >= j.stall {
			same = append(same, fmt.Sprint(o.rank))
		}
	}
	if len(same) > 0 {
		f.Text += ", nor of rank " + strings.Join(same, ", ") + " at the same place"
	}
	return f, nil
}

// nameMissing blames the engines whose votes do not come though their ranks have done all they were told.
func (j *judge) nameMissing(now time.Duration, missing []int) (*v1.Failure, []int) {
	words := make([]string, len(missing))
	for i, e := range missing {
		words[i] = fmt.Sprintf("engine %d on node %s", e, j.nodeOf[e])
	}
	text := fmt.Sprintf("no vote for the step in %s of %s", round(now-j.moved()), strings.Join(words, ", "))
	if !slices.ContainsFunc(j.members, func(e int) bool { return j.heard[j.nodeOf[e]] >= j.since }) {
		text += ", nor any other message of their nodes: does the bus carry any?"
	}
	return &v1.Failure{Rank: uint32(missing[0] * j.tp), Node: j.nodeOf[missing[0]], Step: j.want, Layer: -1, Text: text}, missing
}

func (j *judge) enginesOf(node string) []int {
	var engines []int
	for _, e := range j.members {
		if j.nodeOf[e] == node {
			engines = append(engines, e)
		}
	}
	return engines
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
