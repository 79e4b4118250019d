package kv

import "testing"

func TestBlocksFor(t *testing.T) {
	for _, tt := range []struct{ n, size, want int }{{0, 16, 0}, {1, 16, 1}, {16, 16, 1}, {17, 16, 2}, {5, 1, 5}} {
		if got := BlocksFor(tt.n, tt.size); got != tt.want {
			t.Errorf("BlocksFor(%d, %d) = %d, want %d", tt.n, tt.size, got, tt.want)
		}
	}
}

func TestSlot(t *testing.T) {
	blocks := []int32{7, 2, 9}
	for _, tt := range []struct {
		position, size int
		want           int32
	}{{0, 4, 28}, {3, 4, 31}, {4, 4, 8}, {11, 4, 39}, {2, 1, 9}} {
		if got := Slot(blocks, tt.position, tt.size); got != tt.want {
			t.Errorf("Slot(%v, %d, %d) = %d, want %d", blocks, tt.position, tt.size, got, tt.want)
		}
	}
}
