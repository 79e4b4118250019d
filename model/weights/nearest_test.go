package weights

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/weights/weightstest"
)

// expertNames are names as a large model has them, in a layout of the given spelling.
func expertNames(n int, spelling string) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("model.layers.%d.mlp.%s.%d.gate_proj.weight", i/256, spelling, i%256)
	}
	return names
}

// A checkpoint of another layout lacks every tensor that is asked for, and few of the errors are read. The names are
// searched only for those: a name that appears after the request is found by the error that is read later.
func TestMissingSearchesWhenRead(t *testing.T) {
	const tensors = 23_000 // about as many as DeepSeek-V2 has
	dir := t.TempDir()
	var stored []weightstest.Tensor
	for _, name := range expertNames(tensors, "expert") {
		stored = append(stored, weightstest.Tensor{Name: name, DType: "F8_E4M3", Shape: []int{0, 4}})
	}
	if err := weightstest.Write(filepath.Join(dir, "model.safetensors"), stored...); err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	r := c.NewReader()

	var faults []error
	for _, name := range expertNames(tensors, "experts") {
		if _, err := r.Linear(Matrix{Name: name, In: 4}); err != nil {
			faults = append(faults, err)
		}
	}
	// The matrices that are there lack their scales; the error that says so wraps another one.
	_, err = r.Linear(Matrix{Name: "model.layers.7.mlp.expert.9.gate_proj.weight", In: 4})
	faults = append(faults, err)
	if len(faults) != tensors+1 {
		t.Fatalf("%d faults, want %d", len(faults), tensors+1)
	}

	added := []string{"model.layers.0.mlp.experts_.0.gate_proj.weight", "model.layers.7.mlp.expert.9.gate_proj.weight_scale_in"}
	for _, name := range added {
		c.tensors[name] = nil // a name alone: nothing asks for it
	}
	if got := faults[0].Error(); !strings.Contains(got, "is missing; nearest: ") || !strings.Contains(got, added[0]) {
		t.Errorf("the first fault was searched for before it was read: %s", got)
	}
	if got := faults[tensors].Error(); !strings.Contains(got, `"`+added[1]+`"`) || !strings.HasSuffix(got, `F8_E4M3 [0 4] in blocks of 128x128)`) {
		t.Errorf("the fault of the scales was searched for before it was read: %s", got)
	}
	if missing := (*missingError)(nil); !errors.As(faults[tensors], &missing) {
		t.Errorf("%T does not wrap what is missing", faults[tensors])
	}
}

// nearest keeps the best few while it searches; the result is that of sorting all names.
func TestNearestEqualsSorting(t *testing.T) {
	c := &Checkpoint{tensors: map[string]*tensor{}}
	names := append(expertNames(600, "experts"), expertNames(600, "expert")...)
	for _, name := range names {
		c.tensors[name] = nil
	}
	for _, asked := range []string{names[0] + "_", "model.layers.1.mlp.experts.7.up_proj.weight", "model.layer.1.mlp.experts.300.gate_proj.weight", "lm_head.weight"} {
		similar := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return commonEnds(asked, name)*3 < max(len(asked), len(name))*2
		})
		slices.SortFunc(similar, func(a, b string) int {
			if d := len(a) - 2*commonEnds(asked, a) - (len(b) - 2*commonEnds(asked, b)); d != 0 {
				return d
			}
			return strings.Compare(a, b)
		})
		if got, want := c.nearest(asked), similar[:min(3, len(similar))]; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", asked, got, want)
		}
	}
}
