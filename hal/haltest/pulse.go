package haltest

import (
	"errors"

	"github.com/moerack/moerack/hal"
)

// testUnwanted: an operation whose work is not wanted any more ends with the cause, if the device asks at all; those after it do
// nothing, and the stream is well again behind Synchronize.
func testUnwanted(r *rig) {
	w, _ := r.weight(33, 65)
	x, y := r.f32(4, r.random(4*65)...), r.f32(4, r.random(4*33)...)
	before := r.floats(y)
	asked := false
	r.dev.Pulse(func(bool) error {
		asked = true
		return errCause
	})
	r.st.MatMul(r.alloc(hal.F32, 4, 33), x, w)
	r.st.Add(y, y, y)
	if err := r.st.Synchronize(r.Context()); (err != nil) != asked || asked && (hal.ClassOf(err) != hal.Aborted || !errors.Is(err, errCause)) {
		r.Errorf("asked %v: %v, want class aborted with its cause if it was asked", asked, err)
	}
	r.dev.Pulse(nil)
	if got := r.floats(y); asked != (got[0] == before[0]) {
		r.Errorf("asked %v, and what came after it made %g of %g", asked, got[0], before[0])
	}
	r.st.MatMul(y, x, w)
	r.sync()
}

// testUnwantedMeeting: a rank whose work is not wanted any more does not come, if its device asks before it meets.
func testUnwantedMeeting(m *mate) {
	t := m.alloc(hal.F32, 2, 3)
	if m.rank != 0 {
		m.AllReduce(m.st, t, t)
		if err := m.take(); err != nil && (hal.ClassOf(err) != hal.Aborted || !errors.Is(err, errCause)) {
			m.Errorf("%s: %v, want none or class aborted with its cause", name(m.rank), err)
		}
		return
	}
	asked := false
	m.dev.Pulse(func(waits bool) error {
		asked = asked || waits
		return errCause
	})
	m.AllReduce(m.st, t, t)
	if err := m.take(); (err != nil) != asked || asked && (hal.ClassOf(err) != hal.Aborted || !errors.Is(err, errCause)) {
		m.Errorf("asked %v: %v, want class aborted with its cause if it was asked", asked, err)
	}
	m.dev.Pulse(nil)
	if asked {
		m.Abort(errCause)
	}
}
