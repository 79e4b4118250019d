package rig

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/haltest"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/topology"
)

// Rack is the ranks of a layout in one process, each on a device of its own, joined as the layout says.
type Rack struct {
	testing.TB
	Layout topology.Layout
	Ranks  []*Rig // by global rank
	comms  []hal.Comm
}

// RackOptions describe a rack.
type RackOptions struct {
	Dir    string // of the checkpoint
	Layout topology.Layout
	Form   weights.Form // of the weights
	// Wrap, if not nil, comes between a rank and its communicators.
	Wrap func(rank int, c hal.Comm) hal.Comm
}

// LoadRack loads the model on every rank and brings the ranks together. It is closed when the test ends.
func LoadRack(tb testing.TB, o RackOptions) *Rack {
	tb.Helper()
	k := &Rack{TB: tb, Layout: o.Layout}
	for rank := range o.Layout.World() {
		k.Ranks = append(k.Ranks, LoadForm(tb, o.Dir, o.Layout.Place(rank), 16, o.Form))
	}
	l := o.Layout
	tp, ep := make([]*haltest.MeetingPoint, l.DataParallel), haltest.NewMeetingPoint(l.EP())
	for e := range tp {
		tp[e] = haltest.NewMeetingPoint(l.TensorParallel)
	}
	tb.Cleanup(func() { // before the devices close
		for _, c := range k.comms {
			Close(tb, c)
		}
	})
	var mu sync.Mutex // guards k.comms
	err := k.each(func(r *Rig) error {
		p := r.Place
		join := func(name string, m *haltest.MeetingPoint, rank, size int) (hal.Comm, error) {
			if size == 1 {
				return nil, nil
			}
			g := hal.Group{Name: name, Epoch: 1, Rank: rank, Size: size}
			for i := range size {
				g.Names = append(g.Names, fmt.Sprintf("%s %d", name, i))
			}
			c, err := r.device.Join(r.Context(), g, m.Door(rank))
			if err != nil {
				return nil, err
			}
			if o.Wrap != nil {
				c = o.Wrap(p.Rank, c)
			}
			mu.Lock()
			defer mu.Unlock()
			k.comms = append(k.comms, c)
			return c, nil
		}
		t, err := join(fmt.Sprintf("tp%d", p.Engine), tp[p.Engine], p.TPRank, p.TP)
		if err != nil {
			return err
		}
		e, err := join("ep", ep, p.EPRank, p.EP)
		r.Model.Join(t, e)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// Engine returns the first rank of an engine, for its sequences and batches.
func (k *Rack) Engine(e int) *Rig { return k.Ranks[e*k.Layout.TensorParallel] }

// Step runs a batch on every engine, padded as a plan would, and returns copies of what their first ranks give. With expert
// parallelism off an engine without rows does not run.
func (k *Rack) Step(batches []*nn.Batch) []nn.Output {
	k.Helper()
	rows := make([]int, len(batches))
	for e, b := range batches {
		rows[e] = b.Rows()
	}
	for e, b := range batches {
		if k.Layout.ExpertParallel {
			b.Pad(topology.PadTo(rows, k.Layout.TensorParallel))
		} else if rows[e] > 0 {
			b.Pad(topology.PadTo(rows[e:e+1], k.Layout.TensorParallel))
		}
	}
	outs := make([]nn.Output, len(batches))
	shared := make([][]int32, len(k.Ranks))
	err := k.each(func(r *Rig) error {
		b := batches[r.Place.Engine]
		if b.Rows() == 0 {
			return nil
		}
		out, err := r.Forward(b)
		if err != nil {
			return err
		}
		tokens := make([]int32, len(b.Samples))
		if r.Place.TPRank == 0 {
			out.Logits, out.BadLayer = slices.Clone(out.Logits), slices.Clone(out.BadLayer)
			outs[r.Place.Engine] = out
			for i := range tokens {
				tokens[i] = Greedy(out.Logits[i*r.Config.VocabSize:][:r.Config.VocabSize])
			}
		} else if len(out.Logits) > 0 || len(out.BadLayer) > 0 {
			return errors.New("a rank that is not its engine's first has logits")
		}
		shared[r.Place.Rank] = tokens
		return r.Model.Share(r.Context(), tokens)
	})
	if err != nil {
		k.Fatal(err)
	}
	for rank, r := range k.Ranks {
		first, _ := k.Layout.Ranks(r.Place.Engine)
		if !slices.Equal(shared[rank], shared[first]) {
			k.Fatalf("rank %d was told the tokens %v, rank %d sampled %v", rank, shared[rank], first, shared[first])
		}
	}
	return outs
}

// Abort gives all communicators up.
func (k *Rack) Abort(cause error) {
	for _, c := range k.comms {
		c.Abort(cause)
	}
}

// each runs f for all ranks at once. When it fails on one, the communicators are aborted, so that it ends on all.
func (k *Rack) each(f func(r *Rig) error) error {
	errs := make([]error, len(k.Ranks))
	var done sync.WaitGroup
	for i, r := range k.Ranks {
		done.Go(func() {
			if err := f(r); err != nil {
				errs[i] = fmt.Errorf("rank %d: %w", i, err)
				k.Abort(err)
			}
		})
	}
	done.Wait()
	return errors.Join(errs...)
}
