package parity_test

import (
	"testing"

	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/test/rig"
)

// TestNoAllocation: a decode step allocates nothing in model, hal and kernels.
func TestNoAllocation(t *testing.T) {
	for _, name := range rig.Tested() {
		r := rig.Load(t, name, 16)
		s := r.Sequence(32)
		b := &nn.Batch{}
		r.Feed(b, s, []int32{0, 5, 7, 9}, false)
		r.Run(b)
		n := testing.AllocsPerRun(10, func() {
			if _, err := r.Model.Forward(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %g allocations per step", name, n)
		}
	}
}
