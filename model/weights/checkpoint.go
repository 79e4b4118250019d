package weights

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Checkpoint is an open checkpoint. All methods but Close may be called from many
// goroutines at once; all ranks of a process share one.
type Checkpoint struct {
	dir     string
	shards  []*shard
	tensors map[string]*tensor
	// misplaced has the tensors that are not in the file the index names.
	misplaced map[string]string
	closed    atomic.Bool

	copyMu         sync.Mutex // guards tensor.aligned and the counters
	copies         int
	copiedBytes    int64
	conversions    int
	convertedBytes int64

	formedMu sync.Mutex // guards formed
	formed   map[formKey]*formed
	arena    arena // of what is converted
}

// tensor is an entry with the file that holds it and what happened to it.
type tensor struct {
	*entry
	shard   *shard
	asked   atomic.Bool // by any reader
	aligned []byte      // a copy, when the file's data is misaligned
}

// Names gives the names of all tensors, sorted.
func (c *Checkpoint) Names() []string { return slices.Sorted(maps.Keys(c.tensors)) }

// Copied gives how many tensors, with how many bytes, are copies because their
// data lies at an odd place in the file. Each is copied once, for all readers.
func (c *Checkpoint) Copied() (tensors int, bytes int64) {
	c.copyMu.Lock()
	defer c.copyMu.Unlock()
	return c.copies, c.copiedBytes
}

// Unused gives, sorted, the names that no request asked for and that are not among
// the known leftovers: MTP modules (model.layers.N with N >= numLayers) and stored
// rotary frequencies.
func (c *Checkpoint) Unused(numLayers int) []string {
	var names []string
	for name, t := range c.tensors {
		if !t.asked.Load() && !leftover(name, numLayers) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func leftover(name string, numLayers int) bool {
	if strings.HasSuffix(name, ".rotary_emb.inv_freq") {
		return true
	}
	rest, ok := strings.CutPrefix(name, "model.layers.")
	number, _, dot := strings.Cut(rest, ".")
	if !ok || !dot || number == "" {
		return false
	}
	layer := 0
	for _, digit := range number {
		if digit < '0' || digit > '9' || layer > 1<<24 {
			return false
		}
		layer = layer*10 + int(digit-'0')
	}
	return layer >= numLayers
}

// Close ends the mapping, and frees what was converted. Every view dies with it:
// reading one afterwards is a fatal fault, so whoever computes must have stopped. A second Close does nothing;
// requests after it are errors.
func (c *Checkpoint) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	var errs []error
	if err := c.arena.close(); err != nil {
		errs = append(errs, fmt.Errorf("weights: %s: freeing converted matrices: %w", c.dir, err))
	}
	for _, s := range c.shards {
		if err := unmapFile(s.mapping); err != nil {
			errs = append(errs, fmt.Errorf("weights: %s: unmapping: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}
