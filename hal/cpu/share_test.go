package cpu

import (
	"slices"
	"testing"
)

// TestShareOfProcessors: devices share the processors, and threads keep to them only where there are enough for all.
func TestShareOfProcessors(t *testing.T) {
	list := []int{2, 3, 5, 7}
	for _, tt := range []struct {
		o       Options
		threads int
		bound   []int
	}{
		{Options{}, 1, nil},
		{Options{Threads: 3}, 3, nil},
		{Options{Devices: 1}, 4, nil},
		{Options{Devices: 2, Index: 1, Bind: true}, 2, []int{5, 7}},
		{Options{Devices: 3, Bind: true}, 1, []int{2}},
		{Options{Devices: 9, Index: 8, Bind: true}, 1, nil},
		{Options{Devices: 2, Threads: 3, Bind: true}, 3, nil},
		{Options{Threads: 2, Bind: true}, 2, nil},
	} {
		threads, bound := tt.o.share(list)
		if threads != tt.threads || !slices.Equal(bound, tt.bound) {
			t.Errorf("%+v: %d threads on %v, want %d on %v", tt.o, threads, bound, tt.threads, tt.bound)
		}
	}
}
