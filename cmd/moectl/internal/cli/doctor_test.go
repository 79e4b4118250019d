package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/weights"
)

// A weight file that becomes shorter under its mapping is a finding, not the end of the process.
func TestDoctorWhileAFileShrinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../../test/models/random/rnd-v3-yarn")); err != nil {
		t.Fatal(err)
	}
	checkpoint, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	if err := os.Truncate(filepath.Join(dir, "model.safetensors"), 0); err != nil {
		t.Fatal(err)
	}
	r := &report{}
	r.numbers(func() (weights.Scan, error) { return checkpoint.ScanNonFinite(t.Context()) })
	if r.Broken != 1 || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Detail, "memory fault: was a weight file changed while it was mapped?") {
		t.Errorf("%+v", r)
	}
}

// No other panic is taken for such a fault.
func TestOnlyMemoryFaultsAreFindings(t *testing.T) {
	want := errors.New("bug")
	defer func() {
		if got := recover(); got != any(want) {
			t.Errorf("recovered %v", got)
		}
	}()
	err := mapped(func() error { panic(want) })
	t.Errorf("returned %v", err)
}
