package haltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/moerack/moerack/hal"
)

// testComm runs the tests of communicators with 1 to 4 ranks.
func testComm(t *testing.T, open func() (hal.Device, error)) {
	for _, c := range []struct {
		name string
		min  int // ranks it needs
		f    func(*mate)
	}{
		{"AllReduce", 1, testAllReduce},
		{"ReduceScatter", 1, testReduceScatter},
		{"AllGather", 1, testAllGather},
		{"AllToAllV", 1, testAllToAllV},
		{"SendRecv", 2, testSendRecv},
		{"Barrier", 1, testBarrier},
		{"Reuse", 1, testReuse},
		{"Groups", 1, testGroups},
		{"Epochs", 2, testEpochs},
		{"Sticky", 2, testCommSticky},
		{"Disagree", 2, testDisagree},
		{"WrongOperands", 2, testWrongOperands},
		{"OutOfStep", 2, testOutOfStep},
		{"AbortBefore", 1, testAbortBefore},
		{"AbortWhileWaiting", 2, testAbortWaiting},
		{"AbortWhileComputing", 1, testAbortComputing},
		{"UnwantedMeeting", 2, testUnwantedMeeting},
		{"CloseWhileWaiting", 2, testCloseWaiting},
		{"Closed", 1, testClosed},
	} {
		for size := c.min; size <= 4; size++ {
			t.Run(fmt.Sprintf("%s/%d", c.name, size), func(t *testing.T) { together(t, open, size, c.f) })
		}
	}
	t.Run("JoinRefused", func(t *testing.T) { testJoinRefused(newRig(t, open)) })
	t.Run("JoinEnds", func(t *testing.T) { testJoinEnds(newRig(t, open)) })
}

// shapes are awkward on purpose: nothing, one element, odd sizes, more than one block of any plausible kernel.
var shapes = [][2]int{{0, 3}, {1, 1}, {3, 5}, {2, 33}, {7, 130}, {1, 4099}, {65, 17}}

// values are what a rank brings to an operation, known to all: large and small numbers, so that another order of a sum shows.
func values(rank, op, n int) []float32 {
	r := rand.New(rand.NewPCG(uint64(rank), uint64(op)))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64()) * float32([]int{1, 1000, 1 << 20}[r.IntN(3)])
	}
	return v
}

// sum adds what all ranks bring, in the order of the ranks.
func sum(size, op, n int) []float32 {
	s := values(0, op, n)
	for rank := 1; rank < size; rank++ {
		for i, v := range values(rank, op, n) {
			s[i] += v
		}
	}
	return s
}

// equal demands the very bits, and that nothing around a view changed.
func (m *mate) equal(what string, view, whole hal.Tensor, want []float32) {
	m.Helper()
	got := m.floats(view)
	for i := range want {
		if got[i] != want[i] {
			m.Fatalf("%s: %s: element %d of %s is %g, want %g", name(m.rank), what, i, view, got[i], want[i])
		}
	}
	m.fill(view, -1)
	for i, v := range m.floats(whole) {
		if v != -1 {
			m.Fatalf("%s: %s: element %d around %s became %g", name(m.rank), what, i, view, v)
		}
	}
}

func testAllReduce(m *mate) {
	for op, s := range shapes {
		n := s[0] * s[1]
		in, _ := m.strided(hal.F32, s[0], s[1])
		out, whole := m.strided(hal.F32, s[0], s[1])
		m.st.PutFloat32(in, values(m.rank, op, n))
		m.AllReduce(m.st, out, in)
		m.equal("AllReduce", out, whole, sum(m.size, op, n))
		in, whole = m.strided(hal.F32, s[0], s[1])
		m.st.PutFloat32(in, values(m.rank, op, n))
		m.AllReduce(m.st, in, in)
		m.equal("AllReduce in place", in, whole, sum(m.size, op, n))
	}
}

func testReduceScatter(m *mate) {
	for op, s := range shapes {
		n := s[0] * s[1]
		in, _ := m.strided(hal.F32, s[0]*m.size, s[1])
		out, whole := m.strided(hal.F32, s[0], s[1])
		m.st.PutFloat32(in, values(m.rank, op, n*m.size))
		m.ReduceScatter(m.st, out, in)
		m.equal("ReduceScatter", out, whole, sum(m.size, op, n*m.size)[m.rank*n:][:n])
	}
}

func testAllGather(m *mate) {
	for op, s := range shapes {
		n := s[0] * s[1]
		in, _ := m.strided(hal.F32, s[0], s[1])
		out, whole := m.strided(hal.F32, s[0]*m.size, s[1])
		m.st.PutFloat32(in, values(m.rank, op, n))
		m.AllGather(m.st, out, in)
		var want []float32
		for r := range m.size {
			want = append(want, values(r, op, n)...)
		}
		m.equal("AllGather", out, whole, want)
	}
	in, _ := m.strided(hal.I32, 2, 3)
	out, _ := m.strided(hal.I32, 2*m.size, 3)
	m.fill(in, float32(m.rank))
	m.AllGather(m.st, out, in)
	for i, v := range m.ints(out) {
		if want := int32(i / 6); v != want {
			m.Fatalf("AllGather of integers: element %d is %d, want %d", i, v, want)
		}
	}
}

// rowsBetween is how many rows a rank has for another: uneven, some none.
func rowsBetween(from, to, op int) int { return (3*from + 5*to + op) % 4 }

func testAllToAllV(m *mate) {
	for op, s := range shapes {
		cols := s[1]
		send, recv := make([]int, m.size), make([]int, m.size)
		rows, room := 0, 0
		var want []float32
		for p := range m.size {
			send[p], recv[p] = rowsBetween(m.rank, p, op), rowsBetween(p, m.rank, op)
			rows += send[p]
			room += recv[p]
			at, total := 0, 0
			for q := range m.size {
				if q < m.rank {
					at += rowsBetween(p, q, op)
				}
				total += rowsBetween(p, q, op)
			}
			want = append(want, values(p, op, (total+1)*cols)[at*cols:][:recv[p]*cols]...)
		}
		in, _ := m.strided(hal.F32, rows+1, cols) // one row more than is sent
		out, whole := m.strided(hal.F32, room+1, cols)
		m.st.PutFloat32(in, values(m.rank, op, (rows+1)*cols))
		m.AllToAllV(m.st, out, recv, in, send)
		m.equal("AllToAllV", out.Slice(0, room), whole, want)
		ids, got := m.alloc(hal.I32, rows+1, cols), m.alloc(hal.I32, room+1, cols)
		m.fill(ids, float32(m.rank+1))
		m.AllToAllV(m.st, got, recv, ids, send)
		i := 0
		v := m.ints(got)
		for p, n := range recv {
			for range n * cols {
				if v[i] != int32(p+1) {
					m.Fatalf("AllToAllV of integers: element %d is %d, want %d", i, v[i], p+1)
				}
				i++
			}
		}
		for ; i < len(v); i++ {
			if v[i] != 0 {
				m.Fatalf("AllToAllV: element %d behind the rows received became %d", i, v[i])
			}
		}
	}
	none := make([]int, m.size)
	m.AllToAllV(m.st, m.alloc(hal.F32, 1, 3), none, m.alloc(hal.F32, 1, 3), none)
	m.sync()
}

// testSendRecv passes rows along a ring, pair by pair; several pairs are at work at once.
func testSendRecv(m *mate) {
	next, prev := (m.rank+1)%m.size, (m.rank+m.size-1)%m.size
	for op, s := range shapes {
		n := s[0] * s[1]
		out, _ := m.strided(hal.F32, s[0], s[1])
		in, whole := m.strided(hal.F32, s[0], s[1])
		m.st.PutFloat32(out, values(m.rank, op, n))
		if m.rank == 0 {
			m.Recv(m.st, in, prev)
			m.Send(m.st, out, next)
		} else {
			m.Send(m.st, out, next)
			m.Recv(m.st, in, prev)
		}
		m.equal("Recv", in, whole, values(prev, op, n))
	}
	// The ranks apart from 0 and 1 are in a barrier already.
	id := m.alloc(hal.I32, 1, 2)
	switch m.rank {
	case 0:
		m.fill(id, 7)
		m.Send(m.st, id, 1)
	case 1:
		m.Recv(m.st, id, 0)
		if got := m.ints(id); got[0] != 7 || got[1] != 7 {
			m.Fatalf("Recv of integers: %v, want 7 7", got)
		}
	}
	m.Barrier(m.st)
	m.sync()
}

func testBarrier(m *mate) {
	for range 100 {
		m.Barrier(m.st)
	}
	m.sync()
}

// testReuse overwrites an operand as soon as the operation and the stream allow it: no peer may see the new values.
func testReuse(m *mate) {
	const rows, cols = 3, 65
	a, b := m.alloc(hal.F32, rows, cols), m.alloc(hal.F32, rows, cols)
	all := m.alloc(hal.F32, rows*m.size, cols)
	for op := range 200 {
		m.fill(a, float32(op*m.size+m.rank))
		m.AllReduce(m.st, b, a)
		m.fill(a, float32(op+m.rank))
		m.AllGather(m.st, all, a)
		m.fill(a, -1)
		want := float32(op*m.size*m.size + m.size*(m.size-1)/2) // whole numbers: exact in any order
		if got := m.floats(b); got[0] != want || got[rows*cols-1] != want {
			m.Fatalf("round %d: sum %g … %g, want %g", op, got[0], got[rows*cols-1], want)
		}
		for i, v := range m.floats(all) {
			if want := float32(op + i/(rows*cols)); v != want {
				m.Fatalf("round %d: gathered element %d is %g, want %g", op, i, v, want)
			}
		}
	}
}

// testGroups uses two communicators of one device in turn; they share a name with nobody else's.
func testGroups(m *mate) {
	other := m.join("other", 1)
	if other == nil {
		return
	}
	defer func() {
		if err := other.Close(); err != nil {
			m.Error(err)
		}
	}()
	if g := other.Group(); g.Name != "other" || g.Epoch != 1 || g.Rank != m.rank || g.Size != m.size || len(g.Names) != m.size {
		m.Errorf("group %+v", g)
	}
	t := m.alloc(hal.F32, 2, 3)
	m.fill(t, 1)
	want := float32(1)
	for range 6 {
		m.AllReduce(m.st, t, t)
		other.AllReduce(m.st, t, t)
		want *= float32(m.size * m.size)
	}
	if got := m.floats(t); got[0] != want {
		m.Errorf("twelve sums: %g, want %g", got[0], want)
	}
}
