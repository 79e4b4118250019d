package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/faulty"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// TestFaultsEverywhere: rank 1 fails, dies or hangs in each operation of a step's list, in each layer, of a real model. Every
// request ends and the node fails with an error that names rank, step, layer and operation; all other ranks return; and nothing
// is left once a hang is let go.
func TestFaultsEverywhere(t *testing.T) {
	for _, l := range []topology.Layout{ep(2, 1), {DataParallel: 1, TensorParallel: 2}} {
		exchange, err := topology.ResolveExchange(topology.Auto, l.EP())
		if err != nil {
			t.Fatal(err)
		}
		list := deepseek.Ops(modelOptions(t, "random/rnd-v3-yarn").Config, l.Place(1), nn.Step{Exchange: exchange, Stages: 1})
		for i, op := range list {
			if op.Name == nn.OpSample { // on the host: no device takes part
				continue
			}
			for j, kind := range []string{"fails", "dies", "hangs"} {
				if racing && (3*i+j)%11 != 0 { // a sample; the detector makes it slow
					continue
				}
				t.Run(fmt.Sprintf("DP %d TP %d/layer %d/%s/%s", l.DataParallel, l.TensorParallel, op.Layer, op.Name, kind), func(t *testing.T) {
					t.Parallel()
					faultAt(t, l, op, kind)
				})
			}
		}
	}
}

// faultAt runs a node whose rank 1 meets a fault in an operation of its first step.
func faultAt(t *testing.T, l topology.Layout, op nn.Op, kind string) {
	var in faulty.Injector
	defer in.Release()
	o := modelOptions(t, "random/rnd-v3-yarn")
	o.Layout, o.StallTimeout = l, 300*time.Millisecond
	open := o.Open
	o.Open = func(index int) (hal.Device, error) {
		d, err := open(index)
		if err != nil {
			return nil, err
		}
		return faulty.Wrap(d, &in), nil
	}
	n, err := Start(t.Context(), o)
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
	at := n.facts[1].Progress
	in.Add(faulty.Rule{Device: "cpu:1", When: func(faulty.Call) bool {
		p := at.Read()
		return p.Running && p.Op == op
	}, Limit: 1, Do: do})
	want := "step 2: " + string(op.Name) + ": "
	if op.Layer >= 0 {
		want = fmt.Sprintf("step 2: layer %d: %s: ", op.Layer, op.Name)
	}
	var requests []func() error
	for e := range l.DataParallel {
		requests = append(requests, failing(t, n, actors.Request{IDs: []int32{5, 6, 7}, MaxTokens: 3, IgnoreEOS: true, Engine: &e}))
	}
	for _, failure := range requests {
		wantFailure(t, "request", failure(), want, cause)
	}
	<-n.Done()
	wantFailure(t, "node", n.Err(), want, cause)
	if err := n.Err().Error(); !strings.HasPrefix(err, "rank 1 on node local: ") {
		t.Errorf("node: %v: rank 1 is not named", err)
	}
	checkClose(t, n, kind == "hangs", in.Release)
}

// TestJoinRefused: a device without communicators ends the start, by name.
func TestJoinRefused(t *testing.T) {
	var in faulty.Injector
	in.Add(faulty.Rule{Device: "cpu:1", Op: "Join", Do: faulty.Lack()})
	o := modelOptions(t, "random/rnd-v3-yarn")
	o.Layout = ep(2, 1)
	open := o.Open
	o.Open = func(index int) (hal.Device, error) {
		d, err := open(index)
		if err != nil {
			return nil, err
		}
		return faulty.Wrap(d, &in), nil
	}
	_, err := Start(t.Context(), o)
	wantFailure(t, "start", err, "rank 1 on node local: ", "group ep/ep: cpu:1: Join: this device has no such ability")
}
