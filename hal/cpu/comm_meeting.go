package cpu

import (
	"sync"
	"sync/atomic"

	"github.com/moerack/moerack/hal"
)

// everyone is the peer of a call that meets all members.
const everyone = -1

// call is what a member brings to an operation. Peers read it, and the memory behind it, while the operation runs.
type call struct {
	op         string
	peer       int   // of Send and Recv, else everyone
	err        error // the member's own operands are wrong: the operation fails for all who take part
	in, out    block
	send, recv []int // of AllToAllV
}

// The states of a member. Only its own goroutine makes it wait; whoever settles the operation makes it go or fail.
const (
	idle    = iota // in no operation
	waiting        // its call is posted
	running        // all whom the operation needs have come
	failed         // err says why
)

// member is the place of a rank in a meeting.
type member struct {
	device string // for messages
	call   call   // written by its rank while it does not wait, read by others while it waits or runs
	err    error  // why state is failed
	state  atomic.Uint32
	wake   chan struct{} // one token: something changed, look again
	joined bool
	closed bool
}

// meeting is what the ranks of a communicator share.
//
// An operation has two gates. At the first all post their calls; whoever comes last compares them and lets all run or fail. The
// second opens when all have finished their part. So memory is safe without copies:
//   - A member reads a peer's operands only between the gates. The peer cannot return before the second one, so it cannot
//     overwrite, free or post anything new while somebody reads.
//   - AllReduce may work in place: element i of all inputs and all outputs is touched by one member alone, which has read all
//     inputs of i before it writes an output of i.
//   - Abort acts at the first gate only, under the lock that also decides who runs: a member is either let run with all
//     others or fails, and no one ever reads the operands of one that failed. Behind the first gate nobody waits for anything but
//     the peers' arithmetic, so the second gate needs no way out. A member that panics there goes through it too; the others
//     then fail.
type meeting struct {
	group hal.Group     // Rank is 0
	token uint64        // its key in the registry
	spin  bool          // whether there is a processor for each member
	full  chan struct{} // closed when all have joined
	over  chan struct{} // closed when ended is set

	mu      sync.Mutex // guards what follows and every decision about a member's state
	members []member
	joined  int
	here    int     // members that wait in an operation of everyone
	ended   *ending // why nothing can meet any more, nil before

	unfinished atomic.Int32           // members between the gates
	round      atomic.Uint32          // second gates passed
	torn       atomic.Pointer[ending] // a member panicked between them, and nothing meets after this; nil before
}

func newMeeting(g hal.Group, token uint64, spin bool) *meeting {
	m := &meeting{group: g, token: token, spin: spin, members: make([]member, g.Size), full: make(chan struct{}), over: make(chan struct{})}
	for i := range m.members {
		m.members[i].wake = make(chan struct{}, 1)
	}
	return m
}

// enter brings the member's posted call to the first gate and waits for those it needs. A nil error means that all run.
func (m *meeting) enter(rank int) error {
	me := &m.members[rank]
	m.mu.Lock()
	me.state.Store(waiting)
	m.settleLocked(rank)
	m.mu.Unlock()
	return m.passed(me, waiting)
}

// passed waits until the member is in that state no more, and returns the error with which it failed.
func (m *meeting) passed(me *member, state uint32) error {
	m.wait(me, func() bool { return me.state.Load() == state })
	if me.state.Load() == failed {
		return me.err
	}
	return nil
}

// leave waits at the second gate. An error says that a member did not finish its part. The round cannot change before this member is
// counted, nor can the count start anew before all have left.
func (m *meeting) leave(rank int) error {
	round := m.round.Load()
	if m.unfinished.Add(-1) == 0 {
		m.round.Add(1)
		m.wakeOthers(rank)
	} else {
		m.wait(&m.members[rank], func() bool { return m.round.Load() == round })
	}
	if why := m.torn.Load(); why != nil {
		return m.failure(rank, *why)
	}
	return nil
}

// tear ends the meeting: a member panics behind the first gate. It returns the words for that.
func (m *meeting) tear(rank int) ending {
	why := ending{class: hal.Aborted, what: m.group.Names[rank] + " panicked in the operation", cause: errDied}
	m.torn.CompareAndSwap(nil, &why)
	m.end(why)
	return why
}

// received lets the sender go.
func (m *meeting) received(rank, sender int, finished bool) {
	p := &m.members[sender]
	if !finished {
		p.err = m.failure(sender, m.tear(rank))
		p.state.Store(failed)
	} else {
		p.state.Store(idle)
	}
	p.poke()
}

// spins is how often a waiter looks before it parks: a few microseconds, less than parking and waking a thread cost.
const spins = 2000

// wait returns when still is false. Whoever changes that leaves a token afterwards; one left over costs a look.
func (m *meeting) wait(me *member, still func() bool) {
	if m.spin {
		for range spins {
			if !still() {
				return
			}
		}
	}
	for still() {
		<-me.wake
	}
}

func (m *meeting) wakeOthers(self int) {
	for i := range m.members {
		if i != self {
			m.members[i].poke()
		}
	}
}

func (p *member) poke() {
	select {
	case p.wake <- struct{}{}:
	default: // a token is there: it will look
	}
}
