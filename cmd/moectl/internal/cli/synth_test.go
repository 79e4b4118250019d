package cli

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1000": 1000, "7B": 7, "5GB": 5e9, "500MB": 5e8, "3KB": 3000, "2GiB": 2 << 30, "512 MiB": 512 << 20, "1KiB": 1024,
		"9223372036854775807": math.MaxInt64, "9223372036GB": 9223372036e9,
	} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "GB", "1.5GB", "5TB", "5gb", "9223372036854775808", "9223372037GB", "0x10", "1e9"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}

// signalWhen is a standard error that interrupts the command as soon as it says something.
type signalWhen struct {
	bytes.Buffer
	said    string
	signals chan os.Signal
}

func (w *signalWhen) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.said) {
		w.signals <- os.Interrupt // is taken before this returns
		w.said = "\x00"
	}
	return w.Buffer.Write(p)
}

// TestInterruptEndsSynth: a checkpoint that has begun is removed, and its directory with it.
func TestInterruptEndsSynth(t *testing.T) {
	base := t.TempDir()
	out := filepath.Join(base, "a", "b")
	errs := &signalWhen{said: "writing", signals: make(chan os.Signal)}
	h := host(&bytes.Buffer{}, errs, "synth", "--shape", "tiny-v3", "--layers", "200", "--out", out) // takes longer than a signal by far
	h.Signals = errs.signals
	if code := Run(h); code != exitInterrupted {
		t.Errorf("exit code %d, want 130:\n%s", code, errs)
	}
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
