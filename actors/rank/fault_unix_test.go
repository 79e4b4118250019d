//go:build unix

package rank

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/model/nn"
)

// TestShrunkFile: a mapping whose file was cut faults; the step ends with an error that says so, the process goes on.
func TestShrunkFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped, err := syscall.Mmap(int(f.Fd()), 0, 1<<16, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	m := actortest.NewModel(vocab, limits)
	m.Before = func(context.Context, int, *nn.Batch) error { return fmt.Errorf("read %d", mapped[1<<15]) }
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // as the device thread does
	done := executorOf(m).execute(t.Context(), step(1, []int32{1}))
	if !done.Lost || done.Err == nil || !strings.Contains(done.Err.Error(), "was a weight file changed while it was mapped?") {
		t.Errorf("lost %v, error %v", done.Lost, done.Err)
	}
	if err := syscall.Munmap(mapped); err != nil {
		t.Error(err)
	}
}
