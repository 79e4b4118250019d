package simd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/kernels/kerneltest"
	"github.com/moerack/moerack/kernels/simd"
)

// TestSets runs the suite with each instruction set that is here, and without any.
func TestSets(t *testing.T) {
	names := simd.Names()
	for i := range len(names) + 1 {
		off := names[:i]
		table, choices, err := simd.Select(off)
		if err != nil {
			t.Fatal(err)
		}
		want := simd.Go
		if i < len(names) {
			want = names[i]
		}
		if !slices.ContainsFunc(choices, func(c simd.Choice) bool { return c.Implementation == want }) {
			t.Logf("%s is not on this machine", want)
			continue
		}
		t.Run(want, func(t *testing.T) { kerneltest.Run(t, table) })
	}
}

// TestSelect: every op has an implementation and a reason; what is switched off serves none; an unknown name is refused.
func TestSelect(t *testing.T) {
	cases := [][]string{nil, simd.Names()}
	for _, name := range simd.Names() {
		cases = append(cases, []string{name})
	}
	for _, off := range cases {
		_, choices, err := simd.Select(off)
		if err != nil || len(choices) != len(simd.Ops) {
			t.Fatalf("%d choices for %d ops, %v", len(choices), len(simd.Ops), err)
		}
		for i, c := range choices {
			if c.Op != simd.Ops[i] || c.Why == "" || slices.Contains(off, c.Implementation) {
				t.Errorf("%+v with %v switched off", c, off)
			}
			// The tiles of AMX leave some inputs to these.
			if c.Implementation == "amx" && (slices.Contains(off, "avx512") || slices.Contains(off, "avx512vnni")) {
				t.Errorf("%+v with %v switched off, which it calls", c, off)
			}
		}
	}
	if _, _, err := simd.Select([]string{"avx3"}); err == nil || !strings.Contains(err.Error(), `"avx3"`) || !strings.Contains(err.Error(), simd.Go) {
		t.Errorf("unknown set: %v", err)
	}
}
