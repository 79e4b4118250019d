package weights_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
)

const models = "../../test/models"

func mustOpen(t *testing.T, dir string) *weights.Checkpoint {
	t.Helper()
	c, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// mustFail requires an error with all the words.
func mustFail(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that holds %q", words)
	}
	if !strings.HasPrefix(err.Error(), "weights: ") {
		t.Errorf("error does not begin with the package: %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error does not hold %q: %v", w, err)
		}
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a directory with one model.safetensors.
func write(t *testing.T, tensors ...weightstest.Tensor) string {
	t.Helper()
	dir := t.TempDir()
	do(t, weightstest.Write(filepath.Join(dir, "model.safetensors"), tensors...))
	return dir
}

func f32(name string, values ...float32) weightstest.Tensor {
	return weightstest.Tensor{Name: name, DType: "F32", Shape: []int{len(values)}, Data: weightstest.F32(values...)}
}

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)
