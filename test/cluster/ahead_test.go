package cluster

import (
	"testing"

	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/faulty"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/subject"
)

// TestPlannedAhead: while a step is held in the middle of it, the next one is voted for and planned: the round trip hides behind the
// step that runs.
func TestPlannedAhead(t *testing.T) {
	var in faulty.Injector
	defer in.Release()
	o := options(t)
	o.Cluster, o.Layout.DataParallel, o.Layout.ExpertParallel = "ahead", 2, true
	open := o.Open
	o.Open = func(index int) (hal.Device, error) {
		d, err := open(index)
		if err != nil {
			return nil, err
		}
		return faulty.Wrap(d, &in), nil
	}
	plans := make(chan struct{}, 100) // each is published once, copies go to who lacks them
	_, err := o.Bus.Subscribe(subject.Space{Cluster: o.Cluster}.Plans("ep"), func(bus.Message) { plans <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	const held = 5          // of steps 2 … 9, in its first layer with experts
	a2e := 2*2*(held-2) + 1 // calls: two in each of two layers
	hold := in.Add(faulty.Rule{Device: "cpu:1", Op: "AllGather", N: a2e, Do: faulty.Delay(0)})
	s, err := ask(t, n, 0, 8, 5, 6, 7)
	if err != nil {
		t.Fatal(err)
	}
	<-hold.Hit()
	for range held + 1 { // the first parks the group
		select {
		case <-plans:
		case <-n.Done(): // the held step counts as stalled
			t.Fatalf("no plan for step %d while step %d is held: %v", held+1, held, n.Err())
		}
	}
	hold.Release()
	if err := end(t, s); err != nil {
		t.Error(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
