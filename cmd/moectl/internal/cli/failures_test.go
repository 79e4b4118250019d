package cli

import (
	"errors"
	"fmt"
	"testing"
)

// An error that ends many requests is told once, and at the end how many they were.
func TestFailuresAreToldOnce(t *testing.T) {
	var f failures
	var told []string
	tell := func(where, text string) {
		if err := f.add(where, errors.New(text)); err != nil {
			told = append(told, err.Error())
		}
	}
	for i := range 6 {
		tell(fmt.Sprintf("prompt %d", i), []string{"rank 1 hangs", "rank 2 fails", "rank 1 hangs"}[i%3])
	}
	tell("prompt 6", "no memory")
	for _, err := range f.sums() {
		told = append(told, err.Error())
	}
	want := []string{
		"prompt 0: rank 1 hangs", "prompt 1: rank 2 fails", "prompt 6: no memory",
		"4 requests in all ended as prompt 0 did", "2 requests in all ended as prompt 1 did",
	}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// Of errors that all differ none is lost, however many they are.
func TestFailuresPastTheBound(t *testing.T) {
	var f failures
	for i := range 3 * maxCauses {
		if f.add("prompt", fmt.Errorf("error %d", i)) == nil {
			t.Fatalf("error %d is not told", i)
		}
	}
	if len(f.causes) != maxCauses || f.sums() != nil {
		t.Errorf("%d errors are kept, sums %v", len(f.causes), f.sums())
	}
}
