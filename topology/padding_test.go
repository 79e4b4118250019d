package topology

import "testing"

func TestPadTo(t *testing.T) {
	for _, tt := range []struct {
		name string
		rows []int
		tp   int
		want int
	}{
		{"one engine", []int{5}, 1, 5},
		{"largest counts", []int{3, 9, 1}, 1, 9},
		{"a dummy step has a row", []int{0}, 1, 1},
		{"no engine", nil, 1, 1},
		{"multiple of TP", []int{5, 2}, 4, 8},
		{"already a multiple", []int{8}, 4, 8},
		{"a dummy step divides over TP", []int{0, 0}, 4, 4},
	} {
		if got := PadTo(tt.rows, tt.tp); got != tt.want {
			t.Errorf("%s: PadTo(%v, %d) = %d, want %d", tt.name, tt.rows, tt.tp, got, tt.want)
		}
	}
}
