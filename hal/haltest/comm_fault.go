package haltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/moerack/moerack/hal"
)

// misstep is what the ranks do wrong together: rank 1 is the odd one.
type misstep struct {
	what string
	op   func(odd bool)
	says []string // in the error of every rank
}

// stumble runs missteps one after the other: all ranks must fail, and the communicator must be whole afterwards.
func (m *mate) stumble(steps []misstep) {
	t := m.alloc(hal.F32, 1, 1)
	for _, s := range steps {
		s.op(m.rank == 1)
		m.expect(s.what, hal.CallerFault, s.says...)
		m.fill(t, 1)
		m.AllReduce(m.st, t, t)
		if got := m.floats(t); got[0] != float32(m.size) {
			m.Fatalf("%s: a sum afterwards is %g, want %d", s.what, got[0], m.size)
		}
	}
}

func testDisagree(m *mate) {
	rows := 2
	if m.rank == 1 {
		rows = 4
	}
	a, b := m.alloc(hal.F32, rows, 3), m.alloc(hal.F32, rows*m.size, 3)
	n, wide := m.alloc(hal.I32, 2, 3), m.alloc(hal.I32, 2*m.size, 3)
	counts, more := make([]int, m.size), make([]int, m.size)
	more[0] = 1
	two := []string{name(0), name(1)}
	pair := []misstep{
		{"rows of AllReduce", func(bool) { m.AllReduce(m.st, a, a) }, append(two, "(2, 3)", "(4, 3)")},
		{"rows of AllGather", func(bool) { m.AllGather(m.st, b, a) }, two},
		{"rows of ReduceScatter", func(bool) { m.ReduceScatter(m.st, a, b) }, two},
		{"operations", func(odd bool) {
			if odd {
				m.AllGather(m.st, b, a)
			} else {
				m.AllReduce(m.st, a, a)
			}
		}, append(two, "AllGather", "AllReduce")},
		{"a barrier", func(odd bool) {
			if odd {
				m.Barrier(m.st)
			} else {
				m.AllReduce(m.st, a, a)
			}
		}, append(two, "Barrier", "AllReduce")},
		{"types", func(odd bool) {
			if odd {
				m.AllGather(m.st, b.Slice(0, 2*m.size), a.Slice(0, 2))
			} else {
				m.AllGather(m.st, wide, n)
			}
		}, append(two, "F32", "I32")},
		{"counts", func(odd bool) {
			if odd {
				m.AllToAllV(m.st, b, counts, a, more)
			} else {
				m.AllToAllV(m.st, b, counts, a, counts)
			}
		}, append(two, "AllToAllV")},
	}
	m.stumble(pair)
	switch m.rank { // rank 1 sends 4 rows where rank 0 expects 2
	case 0:
		m.Recv(m.st, a, 1)
	case 1:
		m.Send(m.st, a, 0)
	default:
		return
	}
	m.expect("rows of Send", hal.CallerFault, append(two, "Send", "Recv")...)
}

func testWrongOperands(m *mate) {
	a, b := m.alloc(hal.F32, 2, 3), m.alloc(hal.F32, 2*m.size, 3)
	n, few := m.alloc(hal.I32, 2, 3), make([]int, m.size)
	counts := make([]int, m.size)
	few[0] = -1
	freed, outside := m.alloc(hal.F32, 2, 3), a
	freed.Buf.Free()
	outside.Offset = 1
	with := func(wrong hal.Tensor) func(bool) {
		return func(odd bool) {
			if odd {
				m.AllReduce(m.st, wrong, wrong)
			} else {
				m.AllReduce(m.st, a, a)
			}
		}
	}
	says := []string{"AllReduce"}
	if m.rank != 1 {
		says = append(says, name(1))
	}
	m.stumble([]misstep{
		{"a freed buffer", with(freed), says},
		{"a view outside its buffer", with(outside), says},
		{"no tensor", with(hal.Tensor{}), says},
		{"integers to sum", with(n), says},
		{"a sum into integers", func(odd bool) {
			if odd {
				m.AllReduce(m.st, n, a)
			} else {
				m.AllReduce(m.st, a, a)
			}
		}, says},
		{"a part of a sum into integers", func(odd bool) {
			if odd {
				m.ReduceScatter(m.st, n, b)
			} else {
				m.ReduceScatter(m.st, a, b)
			}
		}, []string{"ReduceScatter"}},
		{"negative counts", func(odd bool) {
			if odd {
				m.AllToAllV(m.st, b, few, a, counts)
			} else {
				m.AllToAllV(m.st, b, counts, a, counts)
			}
		}, nil},
		{"too few counts", func(odd bool) {
			if odd {
				m.AllToAllV(m.st, b, nil, a, nil)
			} else {
				m.AllToAllV(m.st, b, counts, a, counts)
			}
		}, nil},
		{"more rows than there are", func(bool) {
			all := make([]int, m.size)
			all[m.rank] = 3
			m.AllToAllV(m.st, b, all, a, all)
		}, nil},
		{"room for too few rows", func(odd bool) {
			if odd {
				m.AllGather(m.st, a, a)
			} else {
				m.AllGather(m.st, b, a)
			}
		}, nil},
	})
}

// testOutOfStep: two ranks wait for each other in operations that can never meet; nobody hangs, whoever comes first.
func testOutOfStep(m *mate) {
	crew := m.Comm
	defer func() { m.Comm = crew }()
	t := m.alloc(hal.F32, 2, 3)
	for i, step := range []func(odd bool){
		func(odd bool) {
			if odd {
				m.Barrier(m.st)
			} else {
				m.Send(m.st, t, 1)
			}
		},
		func(odd bool) {
			if odd {
				m.Recv(m.st, t, 0)
			} else {
				m.AllReduce(m.st, t, t)
			}
		},
		func(bool) { m.Send(m.st, t, 1-m.rank) },
		func(bool) { m.Recv(m.st, t, 1-m.rank) },
		func(odd bool) {
			if odd {
				m.Barrier(m.st)
			} else {
				m.Send(m.st, t, 0) // to itself
			}
		},
		func(odd bool) {
			if odd {
				m.Recv(m.st, t, m.size) // from nobody
			} else {
				m.Barrier(m.st)
			}
		},
	} {
		if m.Comm = m.join("step", uint64(i)); m.Comm == nil {
			m.Comm = crew
			m.FailNow()
		}
		if m.rank < 2 {
			step(m.rank == 1)
			m.expect("out of step", hal.CallerFault)
		} else {
			m.Barrier(m.st) // comes before or after the others noticed
			m.expect("beside those out of step", hal.CallerFault)
		}
		crew.Barrier(m.st)
		m.sync()
		if err := m.Close(); err != nil {
			m.Error(err)
		}
	}
}

func testJoinRefused(r *rig) {
	good := group("refused", 1, 0, 2)
	for what, change := range map[string]func(*hal.Group){
		"size 0":        func(g *hal.Group) { g.Size, g.Names = 0, nil },
		"negative rank": func(g *hal.Group) { g.Rank = -1 },
		"rank too big":  func(g *hal.Group) { g.Rank = 2 },
		"names":         func(g *hal.Group) { g.Names = g.Names[:1] },
	} {
		g := good
		change(&g)
		if _, err := r.dev.Join(r.Context(), g, NewMeetingPoint(2).Door(0)); hal.ClassOf(err) != hal.CallerFault {
			r.Errorf("join with %s: %v, want a caller's fault", what, err)
		}
	}
	if err := r.dev.Close(); err != nil {
		r.Error(err)
	}
	if _, err := r.dev.Join(r.Context(), group("refused", 1, 0, 1), NewMeetingPoint(1).Door(0)); hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("join of a closed device: %v, want a caller's fault", err)
	}
}

// testJoinEnds: nobody else comes, the context ends, the error names the absent.
func testJoinEnds(r *rig) {
	for rank := range 2 {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		_, err := r.dev.Join(ctx, group("lonely", 1, rank, 2), NewMeetingPoint(2).Door(rank))
		if !errors.Is(err, context.Canceled) || hal.ClassOf(err) == 0 {
			r.Fatalf("join without the others: %v, want a hal error that wraps the context's", err)
		}
		r.says(err, "lonely", fmt.Sprintf("rank %d", 1-rank))
	}
}
