package cpu

import "github.com/moerack/moerack/hal"

// What a newly posted call makes possible is decided here, by the member that posted it, under the meeting's lock.

// settleLocked lets the call of rank run with those it needs, fails it, or leaves it waiting.
func (m *meeting) settleLocked(rank int) {
	me := &m.members[rank]
	for i := range m.members {
		if m.members[i].closed && me.call.meets(i) {
			m.endLocked(m.closedBy(i))
		}
	}
	switch {
	case me.state.Load() != waiting: // the loop ended it
	case m.ended != nil:
		m.failLocked(rank, m.late(rank))
	case me.call.peer == everyone:
		m.gatherLocked(rank)
	default:
		m.pairLocked(rank, me.call.peer)
	}
}

// gatherLocked counts one more member in an operation of everyone; the last one decides for all.
func (m *meeting) gatherLocked(rank int) {
	for i := range m.members {
		if p := &m.members[i]; p.state.Load() == waiting && p.call.peer == rank {
			m.spoilLocked(rank, i)
			return
		}
	}
	if m.here++; m.here < m.group.Size {
		return
	}
	m.here = 0
	for i := range m.members {
		if m.members[i].call.err != nil {
			m.refuseLocked(m.brought(i), m.everyone()...)
			return
		}
	}
	for i := range m.members {
		if j := m.disagrees(i); j >= 0 {
			m.refuseLocked(m.disagreement(j, i), m.everyone()...)
			return
		}
	}
	m.unfinished.Store(int32(m.group.Size))
	for i := range m.members {
		m.members[i].state.Store(running)
		m.members[i].poke()
	}
}

// disagrees returns a member whose call does not fit the call of rank, -1 if there is none.
func (m *meeting) disagrees(rank int) int {
	me, first := &m.members[rank].call, &m.members[0].call
	if me.op != first.op {
		return 0
	}
	switch me.op {
	case "Barrier":
	case "AllToAllV":
		for i := range m.members {
			p := &m.members[i].call
			if p.op == me.op && (p.in.dtype != me.in.dtype || p.in.cols != me.in.cols || p.recv[rank] != me.send[i]) {
				return i
			}
		}
	case "ReduceScatter":
		if !me.out.like(first.out) {
			return 0
		}
	default:
		if !me.in.like(first.in) {
			return 0
		}
	}
	return -1
}

// pairLocked matches Send and Recv. A peer that waits for this very rank in anything else would wait for ever.
func (m *meeting) pairLocked(rank, peer int) {
	me, p := &m.members[rank], &m.members[peer]
	if p.state.Load() != waiting || !p.call.meets(rank) {
		return
	}
	if p.call.peer == everyone || p.call.op == me.call.op {
		m.spoilLocked(rank, peer)
		return
	}
	from, to := &me.call, &p.call
	if from.op == "Recv" {
		from, to = to, from
	}
	switch {
	case me.call.err != nil:
		m.refuseLocked(m.brought(rank), rank, peer)
	case p.call.err != nil:
		m.refuseLocked(m.brought(peer), rank, peer)
	case !from.in.like(to.out):
		m.refuseLocked(m.disagreement(peer, rank), rank, peer)
	default:
		me.state.Store(running)
		p.state.Store(running)
		p.poke()
	}
}

// refuseLocked fails the operation of ranks, who took part in it and stay in step. Whose own call was wrong knows better.
func (m *meeting) refuseLocked(why ending, ranks ...int) {
	for _, r := range ranks {
		m.failLocked(r, m.failure(r, why))
	}
}

// spoilLocked ends the communicator: rank and peer wait for each other in operations that do not fit, so the members are no
// longer in step, and some who should hear of it have not come yet.
func (m *meeting) spoilLocked(rank, peer int) { m.endLocked(m.disagreement(peer, rank)) }

// endLocked fails all who wait and all who come later. The first reason stays.
func (m *meeting) endLocked(why ending) {
	if m.ended != nil {
		return
	}
	open.remove(m.token)
	m.here = 0
	errs := make([]error, m.group.Size)
	for i := range m.members {
		if m.members[i].state.Load() != waiting {
			continue
		}
		mine := why
		if why.class == hal.Aborted {
			mine.absent = m.absent(i)
			why.absent = mine.absent
		}
		errs[i] = m.failure(i, mine)
	}
	m.ended = &why
	close(m.over)
	for i, err := range errs {
		if err != nil {
			m.failLocked(i, err)
		}
	}
}

func (m *meeting) failLocked(rank int, err error) {
	p := &m.members[rank]
	p.err = err
	p.state.Store(failed)
	p.poke()
}
