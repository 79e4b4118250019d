package parity_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/kernels/simd"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/test/rig"
	"github.com/moerack/moerack/topology"
)

// forms are those in which weights run.
var forms = []weights.Form{weights.Stored, weights.BFloat16, weights.Int8}

// quick are the models that a test runs in many ways: where there is only plain Go, the two smallest.
func quick() []string {
	models := rig.Tested()
	if len(simd.Names()) == 0 {
		return models[max(0, len(models)-2):]
	}
	return models
}

// allocations is what each call of f allocates: the least of a few measurements, because the runtime's own allocations, such as
// those of a thread that starts late, are counted too.
func allocations(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for try := 1; try < 5 && least > 0; try++ {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}

// TestNoAllocation: a decode step allocates nothing in model, hal and kernels, in any form of the weights, with fast kernels and plain
// ones, on one thread and on several.
func TestNoAllocation(t *testing.T) {
	for _, name := range quick() {
		for _, form := range forms {
			for _, o := range []cpu.Options{{}, {Threads: 3}, {Threads: 3, Off: simd.Names()}} {
				r := rig.LoadOn(t, o, rig.Dir(name), alone, 16, form)
				b := &nn.Batch{}
				r.Feed(b, r.Sequence(32), []int32{0, 5, 7, 9}, false)
				r.Run(b)
				n := allocations(10, func() {
					if _, err := r.Step(b); err != nil {
						t.Fatal(err)
					}
				})
				if n != 0 {
					t.Errorf("%s in %s, %+v: %g allocations per step", name, form, o, n)
				}
			}
		}
	}
}

// TestNoAllocationTogether: nor does a decode step of ranks that meet.
func TestNoAllocationTogether(t *testing.T) {
	for _, l := range []topology.Layout{
		{DataParallel: 2, TensorParallel: 1, ExpertParallel: true},
		{DataParallel: 1, TensorParallel: 2, ExpertParallel: true},
		{DataParallel: 1, TensorParallel: 2},
	} {
		k := rig.LoadRack(t, rig.RackOptions{Dir: rig.Dir("random/rnd-v3-yarn"), Layout: l})
		batches := make([]*nn.Batch, l.DataParallel)
		for e := range batches {
			batches[e] = &nn.Batch{}
			k.Engine(e).Feed(batches[e], k.Engine(e).Sequence(8), tokens(2), false)
		}
		shared := [2][]int32{{7}, {0}}
		run := func(rank int) error {
			r := k.Ranks[rank]
			if _, err := r.Forward(batches[r.Place.Engine]); err != nil {
				return err
			}
			return r.Model.Share(t.Context(), shared[rank])
		}
		begin, done := make(chan struct{}), make(chan error, 1)
		var peer sync.WaitGroup
		peer.Go(func() {
			for range begin {
				done <- run(1)
			}
		})
		n := allocations(20, func() {
			begin <- struct{}{}
			if err := errors.Join(run(0), <-done); err != nil {
				t.Error(err)
			}
		})
		close(begin)
		peer.Wait()
		if n != 0 {
			t.Errorf("%+v: %g allocations per step", l, n)
		}
		if want := int32(7); l.TensorParallel > 1 && shared[1][0] != want {
			t.Errorf("%+v: rank 1 was told %d, want %d", l, shared[1][0], want)
		}
	}
}
