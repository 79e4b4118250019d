package scheduler

import (
	"fmt"
	"slices"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/nn"
)

// standing is where an engine stands in the steps of its group's epoch. Requests end with an incarnation of the actor; this
// goes on, so that what was voted, accepted and handed over stays so. It is pure.
type standing struct {
	engine, ranks int  // ranks of the engine
	meets         bool // other ranks take part in its steps
	epoch         uint64
	at            uint64       // step of the last plan accepted; before the first one, the number before the epoch's first step
	last          *actors.Plan // nil before the first
	called        uint64       // step that a Call after the last plan names, 0: none
	voted         uint64       // step voted for and not planned yet, 0: none
	woken         bool         // a Wake was sent since the last plan
	drain         bool         // the engine takes no request more
	flights       []*flight    // planned to run and not behind the engine, ascending: at most two
	halted        bool         // a step failed that others take part in: nothing more is voted or handed over
	over          error        // why no step will be run any more
}

// flight is a step that was planned to run, until all ranks of the engine have answered and its stops are matched.
type flight struct {
	plan     *actors.Plan
	rows     int           // of this engine, as voted
	batch    *actors.Batch // nil: its incarnation ended before the plan, an empty one runs
	inc      uint64        // the incarnation whose batch it is
	handed   bool          // the ranks have it
	answered []bool        // by rank of the engine
	sampled  []actors.Sampled
	expanded int        // rows
	sent     nn.Traffic // of all ranks
}

// call takes a Call and reports whether it is news.
func (s *standing) call(m *actors.Called) bool {
	if m.Epoch != s.epoch || s.over != nil || m.Step == 0 {
		return false
	}
	if s.last == nil && s.voted == 0 {
		s.at = m.Step - 1 // the epoch begins here
	}
	if m.Step != s.at+1 || s.called == m.Step {
		return false
	}
	s.called = m.Step
	return true
}

// accept takes the plan that follows the last one and returns the flight if the step runs. It does nothing and returns false for
// an older plan, and when nothing runs any more.
func (s *standing) accept(p *actors.Plan) (*flight, bool) {
	if p.Epoch != s.epoch || s.over != nil || s.halted || p.Step <= s.at {
		return nil, false
	}
	i := slices.Index(p.Members, s.engine)
	if p.Step != s.at+1 || p.Step != s.voted || i < 0 || i >= len(p.Rows) || i >= len(p.Drain) {
		panic(fmt.Sprintf("scheduler: invariant \"a plan follows the last one and the engine voted for it\" broken: plan %d of members %v after plan %d, engine %d voted for %d",
			p.Step, p.Members, s.at, s.engine, s.voted))
	}
	s.at, s.last, s.called, s.voted, s.woken = p.Step, p, 0, 0, false
	if p.Action != actors.Run {
		return nil, true
	}
	f := &flight{plan: p, rows: p.Rows[i], answered: make([]bool, s.ranks)}
	s.flights = append(s.flights, f)
	return f, true
}

// end takes that no step will be run any more. The first cause counts.
func (s *standing) end(cause error) {
	if s.over == nil {
		s.over, s.flights = cause, nil
	}
}

// abandon takes that all requests have ended: what no rank has begun runs as padding.
func (s *standing) abandon() {
	for _, f := range s.flights {
		if f.batch == nil {
			continue
		}
		for _, r := range f.batch.Rows {
			f.batch.End(r.Request)
		}
	}
}

// canVote reports whether the engine may vote for the step after its last plan: it holds that plan, and the step before it is
// behind; where no step runs, only when it is called.
func (s *standing) canVote() bool {
	next := s.at + 1
	switch {
	case s.over != nil || s.halted || s.voted == next:
		return false
	case (s.last == nil || s.last.Action != actors.Run) && s.called != next:
		return false
	default:
		return len(s.flights) == 0 || s.flights[0].plan.Step == s.at
	}
}

// vote notes that the engine has voted for the step after its last plan.
func (s *standing) vote() { s.voted = s.at + 1 }

// wake reports whether a Wake is due, and notes it: the last plan parked the group, nobody has called since, and the engine has
// work or a wish that the plan does not show.
func (s *standing) wake(work bool) bool {
	if s.over != nil || s.halted || s.woken || s.called == s.at+1 || !s.parked() || !work && s.drain == s.wish() {
		return false
	}
	s.woken = true
	return true
}

// parked reports whether the last plan parked the group.
func (s *standing) parked() bool { return s.last != nil && s.last.Action == actors.Park }

// wish returns the engine's drain wish in the last plan.
func (s *standing) wish() bool {
	return s.last != nil && s.last.Drain[slices.Index(s.last.Members, s.engine)]
}

// idle reports whether the last plan parked the group and all steps before it are behind.
func (s *standing) idle() bool { return s.parked() && len(s.flights) == 0 }

// flight returns the step in flight with this number, nil if there is none.
func (s *standing) flight(step uint64) *flight {
	for _, f := range s.flights {
		if f.plan.Step == step {
			return f
		}
	}
	return nil
}

// answer takes a rank's part of a step and reports whether it is news.
func (f *flight) answer(tp int, m *actors.StepDone) bool {
	if tp < 0 || tp >= len(f.answered) || f.answered[tp] {
		return false
	}
	f.answered[tp] = true
	f.sent.A2E += m.Sent.A2E
	f.sent.E2A += m.Sent.E2A
	f.sent.TP += m.Sent.TP
	if tp == 0 {
		f.sampled, f.expanded = m.Sampled, m.Expanded
	}
	return true
}

// drop removes a step that gave nothing, if it is still there.
func (s *standing) drop(f *flight) {
	s.flights = slices.DeleteFunc(s.flights, func(g *flight) bool { return g == f })
}

// landed removes the oldest step and returns it if all ranks have answered; nil if there is none.
func (s *standing) landed() *flight {
	if len(s.flights) == 0 || slices.Contains(s.flights[0].answered, false) {
		return nil
	}
	f := s.flights[0]
	s.flights = s.flights[1:]
	return f
}
