package cli

import (
	"io"
	"os"
	"strings"
	"sync"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/internal/config"
)

// Host is the process around a command. Nothing outside it is read or written, files that flags name apart.
type Host struct {
	Args     []string // without the program's name
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Environ  []string         // NAME=value
	Signals  <-chan os.Signal // the first one interrupts, or calls Exit if nothing is to be ended in order; the second calls Exit; nil: none comes
	Exit     func(code int)   // ends the process at once
	Backends []Backend        // of this binary, at least one
}

// Backend is a kind of device that this binary can open.
type Backend struct {
	Name string
	Open func(index int, c Compute) (hal.Device, error) // index counts the host's devices from 0
	// Check returns what is wrong with names of instruction sets; nil: none is known.
	Check func(kernelsOff []string) error
}

// checkKernels returns the faults of --kernels-off.
func (b Backend) checkKernels(c Compute) error {
	if b.Check == nil || len(c.KernelsOff) == 0 {
		return nil
	}
	if err := b.Check(c.KernelsOff); err != nil {
		return usagef("--kernels-off: %w", err)
	}
	return nil
}

// Compute is what a device of the host may use to compute.
type Compute struct {
	Ranks      int      // of the host, which share its processors
	Threads    int      // 0: the processors shared by the ranks
	Bind       bool     // threads keep to their processors
	KernelsOff []string // instruction sets that are not used
}

// compute returns what each of so many ranks may use.
func compute(s config.Settings, ranks int) Compute {
	c := Compute{Ranks: ranks, Threads: s.Threads, Bind: s.BindThreads}
	if s.KernelsOff != "" {
		c.KernelsOff = strings.Split(s.KernelsOff, ",")
	}
	return c
}

// getenv returns the value of a variable, "" if it is not set.
func (h Host) getenv(name string) string {
	for i := len(h.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(h.Environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// backend returns the backend that --device names, or a fault with the names there are.
func (h Host) backend(name string) (Backend, error) {
	names := make([]string, len(h.Backends))
	for i, b := range h.Backends {
		if b.Name == name {
			return b, nil
		}
		names[i] = b.Name
	}
	return Backend{}, usagef("--device %q: this binary has %s", name, strings.Join(names, ", "))
}

// keptError keeps the first error of a writer for those who do not ask.
type keptError struct {
	to  io.Writer
	err error
}

// Write passes p on.
func (w *keptError) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// lockedWriter lets the log and the messages of a command share standard error: lines are never mixed.
type lockedWriter struct {
	mu sync.Mutex // guards to
	to io.Writer
}

// Write passes p on.
func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
