package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moerack/moerack/actors"
	v1 "github.com/moerack/moerack/messages/v1"
)

const (
	longestInterval = 200 * time.Millisecond // between two reports of a node whose ranks run a step
	shortestSilence = 5 * time.Second        // of the coordinator, before it is given up: what is lost is repeated once a second
	afterDeafness   = 2 * time.Second        // that the bus must be back before silence means something
	farewell        = 500 * time.Millisecond // that a node which leaves waits for the coordinator to say so to all
)

// Core is the pure part of an agent: messages and time in, effects out. It has no clock: now is the time since any moment that does
// not change. The caller carries out what Take returns after each call, in order, and calls Tick when Next says so.
type Core struct {
	node, group string
	engines     []int // of this node, ascending
	stall       time.Duration

	term, epoch uint64
	last        *actors.Plan // nil before the first Call
	called      uint64       // step that a Call names and no plan has decided
	ended       bool         // by a verdict, or because none would come
	gone        *v1.Failure  // the coordinator was given up
	up          bool         // a plan of the epoch was accepted

	votes    map[int]actors.Vote // by engine, for the step after last
	first    time.Duration       // when the first of them came
	voting   actors.Repeat       // on: what there is of votes was sent
	wakes    map[int]bool        // engines that want a Call
	waking   actors.Repeat
	broken   *v1.Failure
	breaking actors.Repeat
	heard    time.Duration // of the coordinator, at the earliest when an answer is waited for
	leaving  bool
	until    time.Duration // of the farewell
	ran      uint64        // the last step that is run, 0: none
	report   time.Duration // next report
	final    int           // reports that have shown the ranks to be through
	effects  []any

	sent, accepted, resent int64 // messages with all votes, plans, copies; since the shell has counted them
}

// finalReports is how often the coordinator is told that all ranks are through with the last step before a park. One can be lost.
const finalReports = 3

// Report is the effect that tells the coordinator where the node's ranks are. Whoever carries it out calls Reported.
type Report struct {
	Term, Epoch uint64
	Step        uint64 // that the ranks owe
}

// ForEngine is the effect that gives a scheduler a message.
type ForEngine struct {
	Engine  int
	Message any // *actors.Planned, *actors.Called or *actors.EpochEnded
}

// Refused is the effect that logs a plan which breaks the protocol.
type Refused struct{ Reason error }

// NewCore makes the core of a node that waits for the first Call. engines are the node's engines of the group, ascending.
func NewCore(node, group string, engines []int, stall time.Duration) *Core {
	return &Core{node: node, group: group, engines: engines, stall: stall, votes: map[int]actors.Vote{}, wakes: map[int]bool{}}
}

// Take returns what is to be done, and forgets it: *messagesv1.Votes, Wake and Done for the coordinator, Report, ForEngine,
// *actors.AbortEpoch for the expert group, *actors.GroupUp and *actors.GroupEnded for the node, Refused, *Left.
func (c *Core) Take() []any {
	effects := c.effects
	c.effects = nil
	return effects
}

func (c *Core) do(effect any) { c.effects = append(c.effects, effect) }

func (c *Core) toEngines(message any) {
	for _, e := range c.engines {
		c.do(ForEngine{e, message})
	}
}

func (c *Core) interval() time.Duration { return min(longestInterval, c.stall/6) }

// next returns the step that votes are for.
func (c *Core) next() uint64 { return c.last.Step + 1 }

// OnCall takes a Call. One of a higher epoch begins it, or is the verdict on the one before.
func (c *Core) OnCall(now time.Duration, m *v1.Call) {
	c.hear(now)
	if m.Term < c.term || m.Epoch < c.epoch || m.Epoch == 0 || m.Step == 0 || m.Wave == 0 {
		return
	}
	c.term = m.Term
	if m.Epoch > c.epoch {
		verdict := (m.Cause != nil || c.epoch > 0) && !c.ended
		c.adopt(m)
		c.gone = nil
		if verdict {
			c.end(m)
		}
	}
	switch {
	case c.gone != nil: // it lives after all: others must not wait for this node
		c.do(&v1.Done{Group: c.group, Term: c.term, Epoch: c.epoch, Node: c.node, Failure: c.gone})
	case c.ended:
		c.do(&v1.Done{Group: c.group, Term: c.term, Epoch: c.epoch, Node: c.node})
	case m.Step == c.next():
		c.onCalled(now, m)
	}
}

// adopt enters an epoch: nothing of the former one counts any more.
func (c *Core) adopt(m *v1.Call) {
	c.epoch = m.Epoch
	members := make([]int, len(m.Members))
	for i, e := range m.Members {
		members[i] = int(e)
	}
	c.last = actors.Beginning(c.group, m.Term, m.Epoch, m.Wave, m.Step, members)
	c.up, c.ran = false, 0
	c.settle()
}

// settle forgets what was under way for a step that is decided.
func (c *Core) settle() {
	c.called = 0
	clear(c.votes)
	clear(c.wakes)
	c.voting.Stop()
	c.waking.Stop()
}

// end carries a verdict out.
func (c *Core) end(m *v1.Call) {
	err := decodeFailure(m.Cause)
	if err == nil {
		err = errors.New("the coordinator gave the epoch up without a cause")
	}
	c.over(m.Epoch-1, err)
}

// over ends an epoch on this node.
func (c *Core) over(old uint64, err error) {
	c.ended = true
	c.breaking.Stop()
	c.do(&actors.AbortEpoch{Epoch: old, Err: err})
	c.toEngines(&actors.EpochEnded{Epoch: old, Err: err})
	c.do(&actors.GroupEnded{Group: c.group, Epoch: old, Err: err})
	if c.leaving {
		c.left()
	}
}

// onCalled answers a Call with the votes that were sent, or has the engines vote.
func (c *Core) onCalled(now time.Duration, m *v1.Call) {
	c.called = m.Step
	clear(c.wakes)
	c.waking.Stop()
	if c.voting.On() {
		c.resent++
		c.sendVotes()
	}
	for _, e := range c.engines {
		if _, voted := c.votes[e]; !voted {
			c.do(ForEngine{e, &actors.Called{Epoch: m.Epoch, Wave: m.Wave, Step: m.Step}})
		}
	}
}

// OnPlan takes a plan. It is accepted if the rules say so; a copy of one that was accepted is not news.
func (c *Core) OnPlan(now time.Duration, p *actors.Plan) {
	c.hear(now)
	if p.Term < c.term || c.last == nil || p.Epoch != c.epoch || c.ended {
		return
	}
	c.term = p.Term
	if p.Step < c.last.Step {
		return
	}
	if err := c.check(p); err != nil {
		c.do(Refused{fmt.Errorf("plan of step %d, epoch %d: %w", p.Step, p.Epoch, err)})
		return
	}
	if p.Step == c.last.Step {
		return
	}
	c.accept(now, p)
}

// check returns why a plan breaks the protocol.
func (c *Core) check(p *actors.Plan) error {
	switch {
	case p.Hash != p.Sum():
		return errors.New("its hash does not fit what it says")
	case p.Step == c.last.Step && c.last.Action != 0 && p.Hash != c.last.Hash:
		return errors.New("it differs from the one that was accepted")
	case p.Step == c.last.Step:
		return nil
	case p.Step > c.next():
		return fmt.Errorf("the last plan is that of step %d", c.last.Step)
	case !slices.Equal(p.Members, c.last.Members):
		return fmt.Errorf("its members are %v, those of the epoch %v", p.Members, c.last.Members)
	case len(p.Rows) != len(p.Members) || len(p.Drain) != len(p.Members):
		return fmt.Errorf("%d members, %d numbers of rows, %d wishes", len(p.Members), len(p.Rows), len(p.Drain))
	case p.Stages < 1 || len(p.Rows) > 0 && p.PadTo < max(1, slices.Max(p.Rows)):
		return fmt.Errorf("%v rows padded to %d in %d stages", p.Rows, p.PadTo, p.Stages)
	case p.Action != actors.Run && p.Action != actors.Park:
		return fmt.Errorf("it says %q", p.Action)
	}
	for _, e := range c.engines {
		v, voted := c.votes[e]
		at, member := slices.BinarySearch(p.Members, e)
		switch {
		case !voted:
			return fmt.Errorf("engine %d has not voted", e)
		case !member:
			return fmt.Errorf("engine %d is not among its members %v", e, p.Members)
		case p.Rows[at] != v.Rows:
			return fmt.Errorf("it gives engine %d %d rows, the vote has %d", e, p.Rows[at], v.Rows)
		}
	}
	return nil
}

func (c *Core) accept(now time.Duration, p *actors.Plan) {
	_, reporting := c.reporting()
	c.last = p
	c.accepted++
	c.settle()
	if p.Action == actors.Run {
		c.ran, c.final = p.Step, 0
		if !reporting {
			c.report = now + c.interval()
		}
	}
	c.toEngines(&actors.Planned{Plan: p})
	if !c.up {
		c.up = true
		c.do(&actors.GroupUp{Group: c.group, Epoch: c.epoch})
	}
}

// OnVote takes the vote of an engine of this node. With the last of them the node's votes are sent.
func (c *Core) OnVote(now time.Duration, v *actors.Vote) {
	_, voted := c.votes[v.Engine]
	if c.last == nil || c.ended || voted || v.Epoch != c.epoch || v.Step != c.next() || !slices.Contains(c.engines, v.Engine) {
		return
	}
	if len(c.votes) == 0 {
		c.first = now
	}
	c.votes[v.Engine] = *v
	if len(c.votes) == len(c.engines) {
		c.sent++
		c.expect(now)
		c.voting.Start(now)
		c.sendVotes()
	}
}

// sendVotes sends the votes there are, and names the engines that lack.
func (c *Core) sendVotes() {
	m := &v1.Votes{Group: c.group, Term: c.term, Epoch: c.epoch, Wave: c.last.Wave, Step: c.next(), Node: c.node}
	if c.last.Action != actors.Run {
		m.Wave++
	}
	for _, e := range c.engines {
		if v, voted := c.votes[e]; voted {
			m.Votes = append(m.Votes, &v1.Vote{Engine: uint32(e), Rows: uint32(v.Rows), Drain: v.Drain, Queue: uint32(v.Queue)})
		} else {
			m.Missing = append(m.Missing, uint32(e))
		}
	}
	c.do(m)
}

// OnWake takes that a parked engine wants a step. It is nothing if the group is not parked, or is called already.
func (c *Core) OnWake(now time.Duration, m *actors.Wake) {
	if c.last == nil || c.ended || m.Epoch != c.epoch || c.last.Action != actors.Park || c.called == c.next() || !slices.Contains(c.engines, m.Engine) {
		return
	}
	c.wakes[m.Engine] = true
	if !c.waking.On() {
		c.expect(now)
		c.waking.Start(now)
		c.sendWake()
	}
}

func (c *Core) sendWake() {
	m := &v1.Wake{Group: c.group, Term: c.term, Epoch: c.epoch, Wave: c.last.Wave + 1, Node: c.node}
	for _, e := range c.engines {
		if c.wakes[e] {
			m.Engines = append(m.Engines, uint32(e))
		}
	}
	c.do(m)
}

// OnBroken takes that a rank of this node has failed in a step. The first one is told until the verdict comes.
func (c *Core) OnBroken(now time.Duration, m *actors.Broken) {
	if c.last == nil || c.ended || c.broken != nil || m.Epoch != c.epoch {
		return
	}
	c.broken = encodeFailure(m.Failure)
	c.expect(now)
	c.breaking.Start(now)
	c.sendBroken()
}

func (c *Core) sendBroken() {
	c.do(&v1.Done{Group: c.group, Term: c.term, Epoch: c.epoch, Step: c.broken.Step, Node: c.node, Failure: c.broken})
}

// Tick does what is due.
func (c *Core) Tick(now time.Duration) {
	if due, ok := c.Next(); ok && now > due+longestInterval { // the node itself was held up: what was sent to it meanwhile comes first
		c.heard = min(c.heard+now-due, now)
	}
	if at, ok := c.silence(); ok && now >= at {
		c.giveUp(now)
	}
	if c.leaving && now >= c.until {
		c.breaking.Stop()
		c.left()
	}
	if c.voting.Due(now) {
		c.resent++
		c.sendVotes()
	}
	if at, ok := c.half(); ok && now >= at {
		c.resent++
		c.expect(now)
		c.voting.Start(now)
		c.sendVotes()
	}
	if c.waking.Due(now) {
		c.resent++
		c.sendWake()
	}
	if c.breaking.Due(now) {
		c.resent++
		c.sendBroken()
		if c.leaving {
			c.breaking.Start(now) // there is little time: the copies come as fast as at first
		}
	}
	if at, ok := c.reporting(); ok && now >= at {
		c.report = now + c.interval()
		c.do(Report{c.term, c.epoch, c.ran})
	}
}

// Reported says whether a Report has shown that all ranks are through with its step. After a park reports end with that.
func (c *Core) Reported(r Report, through bool) {
	if through && r.Step == c.ran && c.last.Action != actors.Run {
		c.final++
	}
}

// half returns when votes are sent although some lack: the coordinator then knows whom the group waits for.
func (c *Core) half() (at time.Duration, ok bool) {
	return c.first + c.stall/2, len(c.votes) > 0 && !c.voting.On()
}

// reporting returns when the next report is due: until the plan after a step that is run, and until all ranks are through with it.
func (c *Core) reporting() (at time.Duration, ok bool) {
	return c.report, c.last != nil && !c.ended && c.ran > 0 && (c.last.Action == actors.Run || c.final < finalReports)
}

// Next returns when Tick is wanted; ok is false while nothing is waited for: before the first Call, parked, or ended.
func (c *Core) Next() (at time.Duration, ok bool) {
	for _, due := range []func() (time.Duration, bool){c.voting.Next, c.half, c.waking.Next, c.breaking.Next, c.reporting, c.silence, c.parting} {
		if t, on := due(); on && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}
