package cpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/haltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errCause = errors.New("the test wants it so")

func groupOf(rank, size int) hal.Group {
	g := hal.Group{Name: "ffn", Epoch: 3, Rank: rank, Size: size}
	for r := range size {
		g.Names = append(g.Names, fmt.Sprintf("rank %d on node a", r))
	}
	return g
}

// rank is a device with a stream and a communicator.
type rank struct {
	dev hal.Device
	st  hal.Stream
	c   hal.Comm
}

// joined opens and joins size ranks, which meet at one point.
func joined(t testing.TB, size int) []rank {
	t.Helper()
	p := haltest.NewMeetingPoint(size)
	ranks := make([]rank, size)
	var all sync.WaitGroup
	for r := range ranks {
		all.Go(func() {
			dev, err := Open(Options{Index: r})
			if err != nil {
				t.Error(err)
				return
			}
			st, err := dev.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			c, err := dev.Join(t.Context(), groupOf(r, size), p.Door(r))
			if err != nil {
				t.Error(err)
				return
			}
			ranks[r] = rank{dev, st, c}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, r := range ranks {
			if err := r.dev.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := len(open.meetings); n != 0 {
			t.Errorf("%d meetings are left in the registry", n)
		}
	})
	return ranks
}

// ops are the operations of rank r with itself and its neighbour.
func (r rank) ops(t testing.TB, rows, cols int) map[string]func() {
	t.Helper()
	g := r.c.Group()
	alloc := func(rows int) hal.Tensor {
		x, err := r.dev.Alloc(hal.F32, rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	a, b, long, other := alloc(rows), alloc(rows), alloc(rows*g.Size), alloc(rows*g.Size)
	counts := make([]int, g.Size)
	for i := range counts {
		counts[i] = rows
	}
	pass := func() {
		for from := range g.Size { // each in turn to its neighbour
			switch to := (from + 1) % g.Size; g.Rank {
			case from:
				r.c.Send(r.st, a, to)
			case to:
				r.c.Recv(r.st, b, from)
			}
		}
	}
	return map[string]func(){
		"AllReduce":     func() { r.c.AllReduce(r.st, a, a) },
		"AllGather":     func() { r.c.AllGather(r.st, long, a) },
		"ReduceScatter": func() { r.c.ReduceScatter(r.st, a, long) },
		"AllToAllV":     func() { r.c.AllToAllV(r.st, other, counts, long, counts) },
		"Barrier":       func() { r.c.Barrier(r.st) },
		"SendRecv":      pass,
	}
}

// TestAbortNamesOnlyTheAbsent: those who wait are not named, whichever operation it is.
func TestAbortNamesOnlyTheAbsent(t *testing.T) {
	for _, op := range []string{"AllReduce", "AllGather", "ReduceScatter", "AllToAllV", "Barrier"} {
		synctest.Test(t, func(t *testing.T) {
			ranks := joined(t, 4)
			var waiting sync.WaitGroup
			for _, r := range []int{0, 1, 3} {
				waiting.Go(ranks[r].ops(t, 2, 8)[op])
			}
			synctest.Wait()
			ranks[2].c.Abort(errCause)
			waiting.Wait()
			for _, r := range []int{0, 1, 3} {
				err := ranks[r].st.Err()
				want := fmt.Sprintf("cpu:%d: %s: group ffn epoch 3: aborted, absent: rank 2 on node a: the test wants it so [aborted]", r, op)
				if err == nil || err.Error() != want || !errors.Is(err, errCause) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
			ranks[2].c.Barrier(ranks[2].st)
			if err := ranks[2].st.Err(); hal.ClassOf(err) != hal.Aborted || !strings.Contains(err.Error(), "had ended before: aborted, absent: rank 2 on node a") {
				t.Errorf("an operation after the end: %v", err)
			}
		})
	}
}

// TestCloseEndsAWait: the last operation of a closed rank is over for all, the next one is not.
func TestCloseEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ranks := joined(t, 3)
		var waiting sync.WaitGroup
		waiting.Go(func() { ranks[1].c.Barrier(ranks[1].st) })
		waiting.Go(func() { ranks[2].c.Recv(ranks[2].st, mustAlloc(t, ranks[2].dev, 1), 0) })
		synctest.Wait()
		if err := ranks[0].c.Close(); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		for _, r := range []int{1, 2} {
			if err := ranks[r].st.Err(); hal.ClassOf(err) != hal.Aborted || !strings.Contains(err.Error(), "given up by rank 0 on node a") {
				t.Errorf("rank %d: %v, want an abort that names rank 0", r, err)
			}
		}
	})
}

// TestPanicBehindTheFirstGate: a rank whose memory is gone panics; the others return and name it, in this operation and the next.
func TestPanicBehindTheFirstGate(t *testing.T) {
	ones := []int{1, 1, 1}
	for name, c := range map[string]struct {
		rows int // of out
		op   func(r rank, out, one, three hal.Tensor)
	}{
		"AllGather":     {3, func(r rank, out, one, _ hal.Tensor) { r.c.AllGather(r.st, out, one) }},
		"ReduceScatter": {1, func(r rank, out, _, three hal.Tensor) { r.c.ReduceScatter(r.st, out, three) }},
		"AllToAllV":     {3, func(r rank, out, _, three hal.Tensor) { r.c.AllToAllV(r.st, out, ones, three, ones) }},
		"Recv": {1, func(r rank, out, one, _ hal.Tensor) {
			if me := r.c.Group().Rank; me == 1 {
				r.c.Recv(r.st, out, 0)
			} else if me == 0 {
				r.c.Send(r.st, one, 1)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := joined(t, 3)
			var all sync.WaitGroup
			for me, r := range ranks {
				out, one, three := mustAlloc(t, r.dev, c.rows), mustAlloc(t, r.dev, 1), mustAlloc(t, r.dev, 3)
				if me == 1 {
					out.Buf.(*buffer).f32 = []float32{} // as a mapping whose file was cut short
				}
				all.Go(func() {
					defer func() {
						if p := recover(); (p != nil) != (me == 1) {
							t.Errorf("rank %d panicked with %v", me, p)
						}
					}()
					c.op(r, out, one, three)
					if name == "Recv" && me == 2 {
						r.c.Barrier(r.st) // comes before or after
					}
					for range 2 {
						err := r.st.Synchronize(t.Context())
						if hal.ClassOf(err) != hal.Aborted || !strings.Contains(err.Error(), "rank 1 on node a panicked in the operation") {
							t.Errorf("rank %d: %v, want an abort that names rank 1", me, err)
						}
						r.c.Barrier(r.st)
					}
				})
			}
			all.Wait()
		})
	}
}

func mustAlloc(t testing.TB, d hal.Device, rows int) hal.Tensor {
	t.Helper()
	x, err := d.Alloc(hal.F32, rows, 1)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestSameNameAndEpoch: two racks of one process use the same name and epoch and do not meet.
func TestSameNameAndEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := joined(t, 2), joined(t, 2)
		var waiting sync.WaitGroup
		waiting.Go(func() { a[0].c.Barrier(a[0].st) })
		waiting.Go(func() { b[1].c.Barrier(b[1].st) })
		synctest.Wait() // both still wait: the two would have made up a pair
		a[1].c.Abort(errCause)
		waiting.Go(func() { b[0].c.Barrier(b[0].st) })
		waiting.Wait()
		if hal.ClassOf(a[0].st.Err()) != hal.Aborted || b[0].st.Err() != nil || b[1].st.Err() != nil {
			t.Errorf("after an abort of the first: %v, %v, %v", a[0].st.Err(), b[0].st.Err(), b[1].st.Err())
		}
	})
}

// replaced is a rendezvous that has some other endpoint for a rank.
type replaced struct {
	hal.Rendezvous
	rank int
	with func([]byte) []byte
}

// Collect exchanges one endpoint.
func (r replaced) Collect(ctx context.Context) ([][]byte, error) {
	all, err := r.Rendezvous.Collect(ctx)
	if err == nil {
		all[r.rank] = r.with(append([]byte{}, all[r.rank]...))
	}
	return all, err
}

func TestEndpointsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		rank int
		with func([]byte) []byte
		want string
	}{
		"another process": {1, func(e []byte) []byte { e[len(magic)] ^= 1; return e }, "rank 1 on node a is in another process: communicators between processes are not there yet"},
		"another backend": {1, func([]byte) []byte { return []byte("tcp 10.0.0.1") }, `rank 1 on node a has published "tcp 10.0.0.1"`},
		"too short":       {1, func(e []byte) []byte { return e[:len(e)-1] }, "rank 1 on node a has published"},
		"own, of another": {0, func([]byte) []byte { return endpoint(0) }, "another one has published as rank 0 on node a"},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := Open(Options{})
			if err != nil {
				t.Fatal(err)
			}
			p := haltest.NewMeetingPoint(2)
			if err := p.Door(1).Publish(t.Context(), endpoint(0)); err != nil {
				t.Fatal(err)
			}
			_, err = dev.Join(t.Context(), groupOf(0, 2), replaced{p.Door(0), c.rank, c.with})
			if hal.ClassOf(err) != hal.CallerFault || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a caller's fault that says %q", err, c.want)
			}
			if n := len(open.meetings); n != 0 {
				t.Errorf("%d meetings are left in the registry", n)
			}
		})
	}
}

// TestJoinWithoutAMember: one has published and then failed; the others name it when their context ends, and none stays behind.
func TestJoinWithoutAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := haltest.NewMeetingPoint(3)
		if err := p.Door(2).Publish(t.Context(), endpoint(0)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		for r := range 2 {
			dev, err := Open(Options{Index: r})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := dev.Join(ctx, groupOf(r, 3), p.Door(r))
				errs <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-errs; hal.ClassOf(err) != hal.Transient || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "absent: rank 2 on node a") {
				t.Errorf("got %v, want it to name rank 2 and the context's end", err)
			}
		}
		if n := len(open.meetings); n != 0 {
			t.Errorf("%d meetings are left in the registry", n)
		}
	})
}

// TestForeignStream: the other rank hears of it and does not wait.
func TestForeignStream(t *testing.T) {
	ranks := joined(t, 2)
	ranks[0].c.Barrier(ranks[1].st)
	if err := ranks[1].st.Synchronize(t.Context()); hal.ClassOf(err) != hal.CallerFault {
		t.Errorf("the stream that was used: %v, want a caller's fault", err)
	}
	ranks[0].c.Barrier(nil)
	ranks[1].c.Barrier(ranks[1].st)
	if err := ranks[1].st.Err(); hal.ClassOf(err) != hal.CallerFault || !strings.Contains(err.Error(), "rank 0 on node a: Barrier: the stream") {
		t.Errorf("the other rank: %v, want a caller's fault that names rank 0", err)
	}
}

// TestDeviceCloseGivesUpItsPlace: a communicator that was left open does not keep the others waiting.
func TestDeviceCloseGivesUpItsPlace(t *testing.T) {
	ranks := joined(t, 2)
	if err := ranks[0].dev.Close(); err != nil {
		t.Fatal(err)
	}
	ranks[1].c.Barrier(ranks[1].st)
	if err := ranks[1].st.Err(); hal.ClassOf(err) != hal.Aborted {
		t.Errorf("got %v, want an abort", err)
	}
}

// TestSteadyStateAllocatesNothing: waiting, meeting and working are free of garbage, whether waiters spin or park.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, spin := range []bool{false, true} {
		for op := range joined(t, 1)[0].ops(t, 1, 1) {
			t.Run(fmt.Sprintf("%s/spin=%v", op, spin), func(t *testing.T) {
				const runs = 100
				ranks := joined(t, 3)
				ranks[0].c.(*comm).m.spin = spin
				own := ranks[0].ops(t, 4, 64)[op]
				var others sync.WaitGroup
				for _, r := range ranks[1:] {
					work := r.ops(t, 4, 64)[op]
					others.Go(func() {
						for range runs + 1 { // AllocsPerRun warms up once
							work()
						}
					})
				}
				if n := testing.AllocsPerRun(runs, own); n != 0 {
					t.Errorf("%v allocations per operation, want 0", n)
				}
				others.Wait()
				for i, r := range ranks {
					if err := r.st.Err(); err != nil {
						t.Errorf("rank %d: %v", i, err)
					}
				}
			})
		}
	}
}

// TestShares: the shares of an AllReduce cover all elements once, in order.
func TestShares(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 100, 4099} {
		for size := 1; size <= 5; size++ {
			end := 0
			for r := range size {
				from, to := share(n, r, size)
				if from != end || to < from {
					t.Errorf("%d elements, member %d of %d: [%d, %d), want it to begin at %d", n, r, size, from, to, end)
				}
				end = to
			}
			if end != n {
				t.Errorf("%d elements over %d members end at %d", n, size, end)
			}
		}
	}
}
