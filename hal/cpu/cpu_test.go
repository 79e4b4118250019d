package cpu_test

import (
	"strings"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/hal/haltest"
)

func open() (hal.Device, error) { return cpu.Open(cpu.Options{}) }

func TestConformance(t *testing.T) { haltest.Run(t, open) }

func TestOpenRefusesNegativeIndex(t *testing.T) {
	if _, err := cpu.Open(cpu.Options{Index: -1}); hal.ClassOf(err) != hal.CallerFault || !strings.Contains(err.Error(), "-1") {
		t.Errorf("index -1: %v, want a caller's fault that names it", err)
	}
}

// TestAllocBeyondMemory: what the host does not have is refused, not the end of the process.
func TestAllocBeyondMemory(t *testing.T) {
	d, err := open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Memory()
	if err != nil {
		t.Skip(err)
	}
	if _, err := d.Alloc(hal.F32, 1<<20, int(m.Total>>20)); hal.ClassOf(err) != hal.CallerFault || !strings.Contains(err.Error(), "are free") {
		t.Errorf("four times the memory: %v, want a caller's fault", err)
	}
}

// TestImportAlignment: bytes at an odd address are refused, not read across element borders.
func TestImportAlignment(t *testing.T) {
	d, err := open()
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 64)
	if _, err := d.Import(hal.F32, 1, 2, raw[1:9]); hal.ClassOf(err) != hal.CallerFault {
		t.Errorf("odd address: %v, want a caller's fault", err)
	}
	if _, err := d.Import(hal.F32, 1, 2, raw[:8]); err != nil {
		t.Errorf("aligned address: %v", err)
	}
}
