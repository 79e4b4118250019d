package actors

import (
	"slices"
	"testing"
	"time"
)

func TestRepeatDoublesUpToASecond(t *testing.T) {
	var r Repeat
	if _, ok := r.Next(); ok || r.On() || r.Due(time.Hour) {
		t.Error("a message that was never sent is repeated")
	}
	now := 3 * time.Second
	r.Start(now)
	var got []int64
	for range 8 {
		next, ok := r.Next()
		if !ok || r.Due(next-1) || !r.Due(next) {
			t.Fatalf("at %s: not due exactly then", next)
		}
		got = append(got, (next - now).Milliseconds())
		now = next
	}
	if want := []int64{50, 100, 200, 400, 800, 1000, 1000, 1000}; !slices.Equal(got, want) {
		t.Errorf("copies after %v ms, want %v", got, want)
	}
	if r.Copies() != 8 {
		t.Errorf("%d copies, want 8", r.Copies())
	}
	if r.Stop(); r.On() || r.Due(time.Hour) || r.Copies() != 0 {
		t.Error("repeated after the answer")
	}
}
