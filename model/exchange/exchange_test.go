package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/hal/haltest"
	"github.com/moerack/moerack/model/exchange"
	"github.com/moerack/moerack/model/nn"
)

// rank is one end of an exchange, on a device of its own.
type rank struct {
	st   hal.Stream
	ex   exchange.Exchange
	comm hal.Comm   // nil: alone
	x    hal.Tensor // (R, H)
	ids  hal.Tensor // (R, K)
}

const hidden, perToken = 5, 3

// group makes the ends of an exchange over ranks.
func group(t *testing.T, ranks, rows, experts int) []*rank {
	t.Helper()
	m := haltest.NewMeetingPoint(ranks)
	group := make([]*rank, ranks)
	if err := each(ranks, func(r int) error {
		dev, err := cpu.Open(cpu.Options{})
		if err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
		st, err := dev.NewStream()
		if err != nil {
			return err
		}
		a := &nn.Allocator{Device: dev}
		k := &rank{st: st, x: a.F32(rows, hidden), ids: a.I32(rows, perToken)}
		s := exchange.Sizes{Rows: rows, Hidden: hidden, Experts: experts, PerToken: perToken, Ranks: ranks, Rank: r}
		group[r] = k
		if ranks == 1 {
			k.ex = exchange.NewLocal(a, s)
			return a.Err()
		}
		names := make([]string, ranks)
		for i := range names {
			names[i] = fmt.Sprintf("rank %d", i)
		}
		c, err := dev.Join(t.Context(), hal.Group{Name: "ep", Epoch: 1, Rank: r, Size: ranks, Names: names}, m.Door(r))
		if err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		k.comm = c
		g := exchange.NewAllGather(a, s)
		g.Join(c)
		k.ex = g
		return a.Err()
	}); err != nil {
		t.Fatal(err)
	}
	return group
}

// each runs f for ranks at once and waits for them.
func each(ranks int, f func(rank int) error) error {
	errs := make([]error, ranks)
	var done sync.WaitGroup
	for r := range ranks {
		done.Go(func() {
			if err := f(r); err != nil {
				errs[r] = fmt.Errorf("rank %d: %w", r, err)
			}
		})
	}
	done.Wait()
	return errors.Join(errs...)
}

// TestThereAndBack sends random rows to experts that multiply by their number + 1, and looks at what comes home: whatever the number
// of ranks, each (row, slot) has its own expert's result, a pair without expert has none, and counts and bytes are those of the routing.
func TestThereAndBack(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 0))
	for _, ranks := range []int{1, 2, 3, 4} {
		for _, local := range []int{1, 2, 5} {
			experts := ranks * local
			if experts < perToken {
				continue
			}
			t.Run(fmt.Sprintf("%d ranks of %d experts", ranks, local), func(t *testing.T) {
				group := group(t, ranks, 7, experts)
				for _, rows := range []int{7, 1, 4, 7} {
					for _, most := range []int{rows, rows / 2, 0} {
						round(t, g, group, rows, most, experts)
					}
				}
			})
		}
	}
}

// round is one way there and back. Of each rank's rows a random number, at most most, goes to experts.
func round(t *testing.T, g *rand.Rand, group []*rank, rows, most, experts int) {
	t.Helper()
	ranks := len(group)
	x, ids := make([][]float32, ranks), make([][]int32, ranks)
	served, abroad := make([]int, experts), make([]int64, ranks) // abroad: pairs of other ranks that a rank serves
	for r := range group {
		x[r], ids[r] = make([]float32, rows*hidden), make([]int32, rows*perToken)
		for i := range x[r] {
			x[r][i] = g.Float32()
		}
		live := g.IntN(most + 1)
		for i := range ids[r] {
			ids[r][i] = -1
		}
		for row := range live {
			for k, e := range g.Perm(experts)[:perToken] {
				ids[r][row*perToken+k] = int32(e)
				served[e]++
				if home := e / (experts / ranks); home != r {
					abroad[home]++
				}
			}
		}
	}
	if err := each(ranks, func(r int) error {
		return group[r].round(t.Context(), r*experts/ranks, ranks, x[r], ids[r], served, abroad[r])
	}); err != nil {
		t.Fatal(err)
	}
}

func (k *rank) round(ctx context.Context, first, ranks int, x []float32, ids []int32, served []int, abroad int64) error {
	rows := len(ids) / perToken
	k.st.PutFloat32(k.x.Slice(0, rows), x)
	k.st.PutInt32(k.ids.Slice(0, rows), ids)
	v, err := k.ex.A2E(ctx, k.st, k.x.Slice(0, rows), k.ids.Slice(0, rows))
	if err != nil {
		return err
	}
	counts, work := make([]int32, v.Counts.Cols), make([]float32, v.Rows.Rows*hidden)
	k.st.GetInt32(counts, v.Counts)
	k.st.GetFloat32(work, v.Rows)
	if err := k.st.Synchronize(ctx); err != nil {
		return err
	}
	at := 0
	for e, n := range counts {
		if int(n) != served[first+e] {
			return fmt.Errorf("expert %d gets %d rows, want %d", first+e, n, served[first+e])
		}
		for ; n > 0; n-- {
			for i := range hidden {
				work[at*hidden+i] *= float32(first + e + 1)
			}
			at++
		}
	}
	k.st.PutFloat32(v.Rows, work)
	h, err := k.ex.E2A(ctx, k.st, v)
	if err != nil {
		return err
	}
	home, index := make([]float32, h.Rows.Rows*hidden), make([]int32, rows*perToken)
	k.st.GetFloat32(home, h.Rows)
	k.st.GetInt32(index, h.Index)
	if err := k.st.Synchronize(ctx); err != nil {
		return err
	}
	const bytes = 4 * hidden
	if want := int64(rows * bytes * (ranks - 1)); v.Sent != want {
		return fmt.Errorf("a2e sent %d bytes, want %d", v.Sent, want)
	}
	if want := abroad * bytes; h.Sent != want {
		return fmt.Errorf("e2a sent %d bytes, want %d", h.Sent, want)
	}
	for p, e := range ids {
		if e < 0 {
			if index[p] != -1 {
				return fmt.Errorf("pair %d has no expert but a result, row %d", p, index[p])
			}
			continue
		}
		for i := range hidden {
			got, want := home[int(index[p])*hidden+i], x[p/perToken*hidden+i]*float32(e+1)
			if got != want {
				return fmt.Errorf("pair %d of expert %d: element %d is %g, want %g", p, e, i, got, want)
			}
		}
	}
	return nil
}

// TestAborted: an exchange whose group is given up says so and why, in either direction.
func TestAborted(t *testing.T) {
	cause := errors.New("rank 1 is gone")
	k := group(t, 2, 2, 4)
	visits := make([]exchange.Visit, 2)
	if err := each(2, func(r int) (err error) {
		k[r].st.PutInt32(k[r].ids, []int32{0, 1, 2, 3, 2, 1})
		visits[r], err = k[r].ex.A2E(t.Context(), k[r].st, k[r].x, k[r].ids)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	k[1].comm.Abort(cause)
	_, err := k[0].ex.E2A(t.Context(), k[0].st, visits[0])
	if err = errors.Join(err, k[0].st.Synchronize(t.Context())); hal.ClassOf(err) != hal.Aborted || !errors.Is(err, cause) {
		t.Errorf("e2a: error %v, want one of class aborted with its cause", err)
	}
	if _, err := k[0].ex.A2E(t.Context(), k[0].st, k[0].x, k[0].ids); hal.ClassOf(err) != hal.Aborted || !errors.Is(err, cause) {
		t.Errorf("a2e: error %v, want one of class aborted with its cause", err)
	}
}

// TestArriving bounds what meets on one rank: experts of a row are different ones.
func TestArriving(t *testing.T) {
	for _, tt := range []struct{ rows, experts, perToken, ranks, want int }{
		{10, 8, 3, 1, 30},
		{10, 8, 3, 2, 60},
		{10, 8, 3, 4, 80}, // 2 experts on each of 4 ranks
		{10, 8, 3, 8, 80}, // one
		{1, 256, 8, 256, 256},
	} {
		s := exchange.Sizes{Rows: tt.rows, Hidden: 1, Experts: tt.experts, PerToken: tt.perToken, Ranks: tt.ranks}
		if got := s.Arriving(tt.rows); got != tt.want {
			t.Errorf("%+v: %d rows arrive at most, want %d", tt, got, tt.want)
		}
	}
}
