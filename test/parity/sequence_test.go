package parity_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/test/rig"
	"github.com/moerack/moerack/topology"
)

// TestSameSequence: all ranks of a group have the same list, and the communicator calls that they really make are the same, in the
// same places of it, for batches of any size and for none.
func TestSameSequence(t *testing.T) {
	for _, l := range []topology.Layout{
		{DataParallel: 2, TensorParallel: 1, ExpertParallel: true},
		{DataParallel: 1, TensorParallel: 2},
		{DataParallel: 2, TensorParallel: 2},
		{DataParallel: 1, TensorParallel: 2, ExpertParallel: true},
		{DataParallel: 2, TensorParallel: 2, ExpertParallel: true},
	} {
		t.Run(fmt.Sprintf("dp%d tp%d ep=%v", l.DataParallel, l.TensorParallel, l.ExpertParallel), func(t *testing.T) {
			const name = "random/rnd-v3-yarn"
			log := &calls{of: make([][]string, l.World())}
			k := rig.LoadRack(t, rig.RackOptions{Dir: rig.Dir(name), Layout: l, Wrap: func(rank int, c hal.Comm) hal.Comm { return &recorder{c, log, rank} }})
			log.rack = k
			step := nn.Step{Exchange: topology.Local, Stages: 1}
			if l.EP() > 1 {
				step.Exchange = topology.AllGather
			}
			cfg := k.Ranks[0].Config
			list := deepseek.Ops(cfg, l.Place(0), step)
			for rank := range l.World() {
				if other := deepseek.Ops(cfg, l.Place(rank), step); !slices.Equal(other, list) {
					t.Fatalf("the list of rank %d is %v, of rank 0 %v", rank, other, list)
				}
			}
			busy := make([]*rig.Sequence, l.DataParallel)
			for e := range busy {
				busy[e] = k.Engine(e).Sequence(64)
			}
			for _, rows := range [][]int{{5, 3}, {1, 0}, {0, 2}, {4, 4}} { // of the engines; 0: a dummy batch
				batches := make([]*nn.Batch, l.DataParallel)
				for e := range batches {
					batches[e] = &nn.Batch{}
					if n := rows[e]; n > 0 {
						k.Engine(e).Feed(batches[e], busy[e], tokens(n), false)
					}
				}
				if l.DataParallel == 1 && rows[0] == 0 {
					batches[0].Pad(l.TensorParallel) // a step that another engine of its group would have wanted
				}
				log.clear()
				k.Step(batches)
				check(t, k, log, list, rows)
			}
		})
	}
}

// check compares what the ranks did in a step with the list.
func check(t *testing.T, k *rig.Rack, log *calls, list []nn.Op, rows []int) {
	t.Helper()
	var want []string
	for _, op := range list {
		want = append(want, expected(op)...)
	}
	for rank, got := range log.of {
		e := k.Ranks[rank].Place.Engine
		if !k.Layout.ExpertParallel && k.Layout.DataParallel > 1 && rows[e] == 0 {
			if len(got) > 0 {
				t.Fatalf("rows %v: rank %d of an engine without work made calls %v", rows, rank, got)
			}
			continue
		}
		var pairs []string
		all := slices.DeleteFunc(slices.Clone(got), func(c string) bool {
			pair := slices.Contains([]string{"logits gather -1 Send", "logits gather -1 Recv", "tokens -1 Send", "tokens -1 Recv"}, c)
			if pair {
				pairs = append(pairs, c)
			}
			return pair
		})
		if !slices.Equal(all, want) {
			t.Fatalf("rows %v: rank %d made the calls\n%q\nwant\n%q", rows, rank, all, want)
		}
		var wantPairs []string // logits up, tokens down, where there are samples
		if k.Layout.TensorParallel > 1 && rows[e] > 0 {
			wantPairs = []string{"logits gather -1 Recv", "tokens -1 Send"}
			if k.Ranks[rank].Place.TPRank > 0 {
				wantPairs = []string{"logits gather -1 Send", "tokens -1 Recv"}
			}
		}
		if !slices.Equal(pairs, wantPairs) {
			t.Fatalf("rows %v: rank %d made the calls %q, want %q", rows, rank, pairs, wantPairs)
		}
	}
}

// expected are the calls of an op on every rank.
func expected(op nn.Op) (calls []string) {
	for _, c := range map[nn.OpName][]string{
		nn.OpEmbedReduce:     {"AllReduce"},
		nn.OpAttentionReduce: {"AllReduce"},
		nn.OpMLPReduce:       {"AllReduce"},
		nn.OpA2E:             {"AllGather", "AllGather"},
		nn.OpSharedReduce:    {"ReduceScatter"},
		nn.OpE2A:             {"AllToAllV"},
		nn.OpExpertsReduce:   {"AllReduce"},
		nn.OpGather:          {"AllGather"},
	}[op.Name] {
		calls = append(calls, fmt.Sprintf("%s %d %s", op.Name, op.Layer, c))
	}
	return calls
}

// calls are what the ranks called, with the op of the list that they said they were in.
type calls struct {
	rack *rig.Rack
	mu   sync.Mutex // guards of
	of   [][]string
}

func (c *calls) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.of {
		c.of[i] = nil
	}
}

func (c *calls) add(rank int, call string) {
	at := c.rack.Ranks[rank].Model.Progress().Read()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !at.Running:
		call += " outside a step"
	case !at.Op.Name.Meets():
		call += " in an op that meets nobody"
	}
	c.of[rank] = append(c.of[rank], fmt.Sprintf("%s %d %s", at.Op.Name, at.Op.Layer, call))
}

// recorder notes the calls of a communicator.
type recorder struct {
	hal.Comm
	log  *calls
	rank int
}

func (r *recorder) AllReduce(st hal.Stream, out, in hal.Tensor) {
	r.log.add(r.rank, "AllReduce")
	r.Comm.AllReduce(st, out, in)
}

func (r *recorder) AllGather(st hal.Stream, out, in hal.Tensor) {
	r.log.add(r.rank, "AllGather")
	r.Comm.AllGather(st, out, in)
}

func (r *recorder) ReduceScatter(st hal.Stream, out, in hal.Tensor) {
	r.log.add(r.rank, "ReduceScatter")
	r.Comm.ReduceScatter(st, out, in)
}

func (r *recorder) AllToAllV(st hal.Stream, out hal.Tensor, recv []int, in hal.Tensor, send []int) {
	r.log.add(r.rank, "AllToAllV")
	r.Comm.AllToAllV(st, out, recv, in, send)
}

func (r *recorder) Send(st hal.Stream, t hal.Tensor, to int) {
	r.log.add(r.rank, "Send")
	r.Comm.Send(st, t, to)
}

func (r *recorder) Recv(st hal.Stream, t hal.Tensor, from int) {
	r.log.add(r.rank, "Recv")
	r.Comm.Recv(st, t, from)
}

func (r *recorder) Barrier(st hal.Stream) {
	r.log.add(r.rank, "Barrier")
	r.Comm.Barrier(st)
}

// TestAbortedStep: a rank whose peers do not come ends when its communicators are given up, and says where it was and why.
func TestAbortedStep(t *testing.T) {
	for _, tt := range []struct {
		layout topology.Layout
		at     nn.Op
	}{
		{topology.Layout{DataParallel: 2, TensorParallel: 1, ExpertParallel: true}, nn.Op{Name: nn.OpA2E, Layer: 1}},
		{topology.Layout{DataParallel: 1, TensorParallel: 2}, nn.Op{Name: nn.OpEmbedReduce, Layer: -1}},
	} {
		cause := errors.New("rank 1 is gone")
		var k *rig.Rack
		k = rig.LoadRack(t, rig.RackOptions{Dir: rig.Dir("random/rnd-v3-yarn"), Layout: tt.layout, Wrap: func(_ int, c hal.Comm) hal.Comm {
			return &late{Comm: c, before: func() { go k.Abort(cause) }}
		}})
		b := &nn.Batch{}
		k.Engine(0).Feed(b, k.Engine(0).Sequence(8), tokens(4), false)
		_, err := k.Engine(0).Forward(b)
		var op *nn.OpError
		if !errors.As(err, &op) || op.Op != tt.at || hal.ClassOf(err) != hal.Aborted || !errors.Is(err, cause) {
			t.Errorf("%+v: error %v, want one of class aborted in %v with its cause", tt.layout, err, tt.at)
		}
		if p := k.Engine(0).Model.Progress().Read(); p.Running {
			t.Errorf("%+v: the failed step still runs: %+v", tt.layout, p)
		}
	}
}

// late does something before a rank waits.
type late struct {
	hal.Comm
	before func()
}

func (l *late) AllReduce(st hal.Stream, out, in hal.Tensor) {
	l.before()
	l.Comm.AllReduce(st, out, in)
}

func (l *late) AllGather(st hal.Stream, out, in hal.Tensor) {
	l.before()
	l.Comm.AllGather(st, out, in)
}

// tokens returns n ids that every vocabulary has; never the padding token.
func tokens(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(1 + (i*37+5)%300)
	}
	return v
}
