package haltest

import (
	"errors"

	"github.com/moerack/moerack/hal"
)

var errCause = errors.New("the suite wants it so")

// ops are all operations in a form in which rank 0 and rank 1 need each other.
func (m *mate) ops() map[string]func() {
	a, b := m.alloc(hal.F32, 2, 3), m.alloc(hal.F32, 2*m.size, 3)
	counts := make([]int, m.size)
	ops := map[string]func(){
		"AllReduce":     func() { m.AllReduce(m.st, a, a) },
		"AllGather":     func() { m.AllGather(m.st, b, a) },
		"ReduceScatter": func() { m.ReduceScatter(m.st, a, b) },
		"AllToAllV":     func() { m.AllToAllV(m.st, b, counts, a, counts) },
		"Barrier":       func() { m.Barrier(m.st) },
	}
	if m.size > 1 {
		ops["Send"] = func() { m.Send(m.st, a, 1-min(m.rank, 1)) }
		ops["Recv"] = func() { m.Recv(m.st, a, 1-min(m.rank, 1)) }
	}
	return ops
}

func testAbortBefore(m *mate) {
	m.Abort(errCause)
	m.Abort(errLeft) // the first counts
	for what, op := range m.ops() {
		op()
		m.expect(what, hal.Aborted, what, "crew", "epoch 1", errCause.Error())
		op()
		if err := m.take(); !errors.Is(err, errCause) {
			m.Errorf("%s: %v does not wrap its cause", what, err)
		}
	}
}

// testAbortWaiting lets one rank stay away from each operation in turn, in an epoch of its own.
func testAbortWaiting(m *mate) {
	crew := m.Comm
	defer func() { m.Comm = crew }()
	for i, what := range []string{"AllReduce", "AllGather", "ReduceScatter", "AllToAllV", "Barrier", "Send", "Recv"} {
		if m.Comm = m.join("abort", uint64(i)); m.Comm == nil {
			m.Comm = crew
			m.FailNow()
		}
		absent := m.size - 1
		if what == "Send" || what == "Recv" {
			absent = 1
		}
		switch {
		case m.rank == absent:
			m.Abort(errCause)
		case absent == m.size-1 || m.rank == 0:
			m.ops()[what]()
			m.expect(what, hal.Aborted, what, "abort", name(absent), errCause.Error())
		}
		if err := m.Close(); err != nil {
			m.Errorf("close after abort: %v", err)
		}
		crew.Barrier(m.st)
		m.sync()
	}
}

func testCloseWaiting(m *mate) {
	if m.rank == m.size-1 {
		if err := m.Close(); err != nil {
			m.Error(err)
		}
		return
	}
	m.Barrier(m.st)
	m.expect("Barrier", hal.Aborted, name(m.size-1))
}

func testClosed(m *mate) {
	for range 2 {
		if err := m.Close(); err != nil {
			m.Error(err)
		}
	}
	for what, op := range m.ops() {
		op()
		m.expect(what+" after Close", hal.CallerFault, what)
	}
}

// testEpochs ends an older epoch; the newer one goes on.
func testEpochs(m *mate) {
	next := m.join("crew", 2)
	if next == nil {
		return
	}
	defer func() {
		if err := next.Close(); err != nil {
			m.Error(err)
		}
	}()
	if m.rank == 0 {
		m.Abort(errCause)
	} else {
		m.Barrier(m.st) // rank 0 never comes
		m.expect("the old epoch", hal.Aborted, name(0))
	}
	m.Barrier(m.st)
	m.expect("the old epoch", hal.Aborted, "epoch 1")
	t := m.alloc(hal.F32, 1, 1)
	m.fill(t, 1)
	next.AllReduce(m.st, t, t)
	if got := m.floats(t); got[0] != float32(m.size) {
		m.Errorf("the new epoch: %v, want %d", got, m.size)
	}
}

// testCommSticky: a stream with an error takes no part; its peers wait until somebody gives the group up.
func testCommSticky(m *mate) {
	t := m.alloc(hal.F32, 2, 3)
	if m.rank == 0 {
		m.st.Add(t, t, m.alloc(hal.F32, 1, 3))
		m.AllReduce(m.st, t, t)
		m.expect("the error before", hal.CallerFault, "Add")
		m.Abort(errCause)
		return
	}
	m.AllReduce(m.st, t, t)
	m.expect("AllReduce without rank 0", hal.Aborted, name(0))
}

// testAbortComputing: work of a device whose group was given up ends early or is done, until the communicator is closed.
func testAbortComputing(m *mate) {
	w, _ := m.weight(33, 65)
	x, y := m.f32(4, m.random(4*65)...), m.alloc(hal.F32, 4, 33)
	m.Abort(errCause)
	m.st.MatMul(y, x, w)
	if err := m.take(); err != nil && (hal.ClassOf(err) != hal.Aborted || !errors.Is(err, errCause)) {
		m.Errorf("work after Abort: %v, want none or class aborted with its cause", err)
	}
	if err := m.Close(); err != nil {
		m.Error(err)
	}
	m.st.MatMul(y, x, w)
	if err := m.take(); err != nil {
		m.Errorf("work after Close: %v", err)
	}
}
