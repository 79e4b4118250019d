package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/faulty"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

const stall = 300 * time.Millisecond

// meetings are the calls of an operation that meets other ranks, as the first rank of an engine of two makes them and as the second.
var meetings = map[nn.OpName][2][]string{
	nn.OpEmbedReduce:     {{"AllReduce"}, {"AllReduce"}},
	nn.OpAttentionReduce: {{"AllReduce"}, {"AllReduce"}},
	nn.OpMLPReduce:       {{"AllReduce"}, {"AllReduce"}},
	nn.OpA2E:             {{"AllGather", "AllGather"}, {"AllGather", "AllGather"}},
	nn.OpSharedReduce:    {{"ReduceScatter"}, {"ReduceScatter"}},
	nn.OpE2A:             {{"AllToAllV"}, {"AllToAllV"}},
	nn.OpGather:          {{"AllGather"}, {"AllGather"}},
	nn.OpLogitsGather:    {{"Recv"}, {"Send"}},
	nn.OpTokens:          {{"Send"}, {"Recv"}},
}

// meeting is one such call in a step.
type meeting struct {
	op   nn.Op
	call string
	n    int // the n-th of its kind
}

// TestFaultsInMeetings: where engines are cut and share their experts, a rank that fails in any call in which it meets others, in any
// layer, or dies or hangs in the first call of each kind of meeting, is named with step, layer and operation; within the stall time and a
// second all requests have ended, and the node has; all other ranks return.
func TestFaultsInMeetings(t *testing.T) {
	layout := topology.Layout{DataParallel: 2, TensorParallel: 2, ExpertParallel: true}
	list := deepseek.Ops(options(t).Config, layout.Place(0), nn.Step{Exchange: topology.AllGather, Stages: 1})
	for _, rank := range []int{2, 3} { // of the engine that does not have the group's first rank
		seen := map[nn.OpName]bool{}
		for i, m := range calls(list, rank%2) {
			again := seen[m.op.Name]
			seen[m.op.Name] = true
			differs := m.call == "Send" || m.call == "Recv"
			for j, kind := range []string{"fails", "dies", "hangs"} {
				if rank == 2 && !differs || kind != "fails" && again || (racing || testing.Short()) && (i+j)%5 != 0 {
					continue // no more than a sample
				}
				t.Run(fmt.Sprintf("rank %d/layer %d/%s/%s %d %s", rank, m.op.Layer, m.op.Name, m.call, m.n, kind), func(t *testing.T) {
					t.Parallel()
					faultIn(t, layout, rank, m, kind)
				})
			}
		}
		if len(seen) != len(meetings) {
			t.Errorf("rank %d: the list has %d operations that meet others, want %d", rank, len(seen), len(meetings))
		}
	}
}

// calls returns all calls of a step in which a rank meets others.
func calls(list []nn.Op, tp int) (all []meeting) {
	n := map[string]int{}
	for _, op := range list {
		for _, call := range meetings[op.Name][tp] {
			n[call]++
			all = append(all, meeting{op, call, n[call]})
		}
	}
	return all
}

// faultIn runs a node whose rank meets a fault in the first step.
func faultIn(t *testing.T, layout topology.Layout, rank int, at meeting, kind string) {
	var in faulty.Injector
	defer in.Release()
	o := options(t)
	o.Layout, o.StallTimeout = layout, stall
	open := o.Open
	o.Open = func(index int) (hal.Device, error) {
		d, err := open(index)
		if err != nil {
			return nil, err
		}
		return faulty.Wrap(d, &in), nil
	}
	n, err := node.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	do, cause := faulty.Fail(hal.CallerFault, 7), "failed as told (code 7)"
	switch kind {
	case "dies":
		do, cause = faulty.Die(), "died as told"
	case "hangs":
		do, cause = faulty.Hang(), "no progress for "
	}
	fault := in.Add(faulty.Rule{Device: fmt.Sprintf("cpu:%d", rank), Op: at.call, N: at.n, Do: do})
	want := fmt.Sprintf("rank %d on node local: step 2: %s: ", rank, at.op.Name)
	if at.op.Layer >= 0 {
		want = fmt.Sprintf("rank %d on node local: step 2: layer %d: %s: ", rank, at.op.Layer, at.op.Name)
	}
	check := func(what string, err error) {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: error %v, want %s… %s", what, err, want, cause)
		}
	}
	failed := make(chan error, layout.DataParallel)
	for e := range layout.DataParallel {
		s, err := ask(t, n, e, 3, 5, 6, 7)
		if err != nil { // the fault was faster
			failed <- err
			continue
		}
		go func() { failed <- end(t, s) }()
	}
	<-fault.Hit()
	began := time.Now()
	for range layout.DataParallel {
		check("request", <-failed)
	}
	<-n.Done()
	check("node", n.Err())
	if d := time.Since(began); d > stall+time.Second {
		t.Errorf("ended %s after the fault, want at most %s", d, stall+time.Second)
	}
	var f *actors.Failure
	if !errors.As(n.Err(), &f) || f.Rank != rank || f.Step != 2 || f.Op != string(at.op.Name) || f.Layer != at.op.Layer {
		t.Errorf("node: failure %+v", f)
	}
	err = n.Close(t.Context())
	if kind != "hangs" {
		if err != nil {
			t.Errorf("close: %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("left behind: rank %d on node local is stopping, in step 2", rank)) || strings.Count(err.Error(), "on node local") != 1 {
		t.Errorf("close: %v, want that it has left rank %d behind, and no other", err, rank)
	}
	in.Release()
	for n.Close(t.Context()) != nil { // until the rank has ended
	}
}
