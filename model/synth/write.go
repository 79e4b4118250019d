package synth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/moerack/moerack/model/weights"
)

// Write writes the checkpoint and returns in how many files its tensors are. All cores make numbers; what is held of them is a
// few MiB for each. progress, if not nil, is told how many bytes of tensors are written so far, by the goroutine of the call.
//
// Until all files are there they have names of their own; config.json comes last. When ctx ends or something fails, what was made
// is removed again, directories too; a checkpoint that to.Force was to replace is as it was, unless the failure came while files
// were given their names.
func (c *Checkpoint) Write(ctx context.Context, to weights.Target, progress func(done int64)) (files int, err error) {
	entries := make([]weights.Entry, len(c.tensors))
	for i, t := range c.tensors {
		entries[i] = weights.Entry{Name: t.name, DType: t.element, Shape: t.shape()}
	}
	w, err := weights.NewWriter(to, entries)
	if err != nil {
		return 0, err
	}
	if err := c.fill(ctx, w, progress); err != nil {
		return 0, w.Discard(fmt.Errorf("synth: %w", err))
	}
	if err := c.describe(w); err != nil {
		return 0, w.Discard(fmt.Errorf("synth: %w", err))
	}
	return w.Shards(), w.Commit()
}

// fill writes all tensors: some goroutines make pieces, this one writes them.
func (c *Checkpoint) fill(ctx context.Context, w *weights.Writer, progress func(int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := int64(0)
	spare := make(chan []byte, 2*runtime.GOMAXPROCS(0)) // memory for pieces: as many as can be made or wait to be written
	for m := range c.produce(ctx, spare) {
		if ctx.Err() != nil {
			continue // until the makers have seen it too
		}
		if err := m.write(w); err != nil {
			cancel(err)
			continue
		}
		done += int64(len(m.data) + len(m.scales))
		spare <- m.data
		if progress != nil {
			progress(done)
		}
	}
	return context.Cause(ctx)
}

// produce returns the pieces in about their order. The channel is closed when all are made, or soon after ctx has ended. It puts
// empty memory into spare, and takes it from there; whoever has written a piece gives it back.
func (c *Checkpoint) produce(ctx context.Context, spare chan []byte) <-chan made {
	out := make(chan made)
	list := pieces(c.tensors)
	var next atomic.Int64
	var makers sync.WaitGroup
	for range cap(spare) {
		spare <- nil
	}
	for range cap(spare) / 2 {
		makers.Go(func() { // ends with the list or ctx
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				select {
				case <-ctx.Done():
					return
				case buf := <-spare:
					select {
					case <-ctx.Done():
						return
					case out <- list[i].make(c.seed, buf):
					}
				}
			}
		})
	}
	go func() { // ends with the makers
		makers.Wait()
		close(out)
	}()
	return out
}

// describe adds the small files.
func (c *Checkpoint) describe(w *weights.Writer) error {
	for _, f := range []struct {
		name  string
		value any
	}{{"generation_config.json", c.config.generation()}, {"config.json", c.config}} {
		text, err := json.MarshalIndent(f.value, "", "  ")
		if err != nil {
			return err
		}
		if err := w.AddFile(f.name, bytes.NewReader(append(text, '\n'))); err != nil {
			return err
		}
	}
	return nil
}
