package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/topology"
)

// pair are options of two nodes on one bus that share a layout of two engines of two ranks; opened are the devices that each opens.
func pair(t *testing.T) (both [2]node.Options, opened *[2][]int) {
	t.Helper()
	var mu sync.Mutex // guards opened
	opened = new([2][]int)
	network := membus.New(membus.Options{})
	for i := range both {
		o := options(t)
		b := network.Connect()
		t.Cleanup(func() {
			if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("bus: %v", err)
			}
		})
		o.Bus, o.Cluster, o.Name, o.Coordinate = b, "two", []string{"a", "b"}[i], i == 0
		o.Layout, o.FirstEngine, o.Engines = topology.Layout{DataParallel: 2, TensorParallel: 2, ExpertParallel: true}, i, 1
		o.Open = func(index int) (hal.Device, error) {
			mu.Lock()
			defer mu.Unlock()
			opened[i] = append(opened[i], index)
			slices.Sort(opened[i])
			return cpu.Open(cpu.Options{Index: index})
		}
		both[i] = o
	}
	return both, opened
}

// startBoth starts both nodes at once, as each waits for the other.
func startBoth(t *testing.T, both [2]node.Options) (nodes [2]*node.Node, errs [2]error) {
	t.Helper()
	var wait sync.WaitGroup
	for i := range both {
		wait.Go(func() { nodes[i], errs[i] = node.Start(t.Context(), both[i]) })
	}
	wait.Wait()
	return nodes, errs
}

// TestDevicesOfTwoNodes: nodes of one host share its devices, nodes of two hosts begin at 0 each.
func TestDevicesOfTwoNodes(t *testing.T) {
	for hosts, want := range map[[2]string]string{{"h", "h"}: "[[0 1] [2 3]]", {"h", "i"}: "[[0 1] [0 1]]"} {
		both, opened := pair(t)
		both[0].Host, both[1].Host = hosts[0], hosts[1]
		nodes, errs := startBoth(t, both)
		for i, n := range nodes {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			s, err := ask(t, n, i, 3, 5, 6, 7)
			if err == nil {
				err = end(t, s)
			}
			if err != nil {
				t.Error(err)
			}
		}
		var wait sync.WaitGroup
		for _, n := range nodes {
			wait.Go(func() {
				if err := n.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if got := fmt.Sprint(*opened); got != want {
			t.Errorf("hosts %v: devices %s, want %s", hosts, got, want)
		}
	}
}

// TestUnequalNodes: of two nodes whose settings differ in what must be equal the second is refused, naming both, and neither opens a
// device.
func TestUnequalNodes(t *testing.T) {
	both, opened := pair(t)
	both[1].MaxNumBatchedTokens = 77
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error, len(both))
	for _, o := range both {
		go func() {
			_, err := node.Start(ctx, o)
			started <- err
		}()
	}
	refused := <-started
	for _, part := range []string{"node a", "node b", "has another model or other settings than"} {
		if refused == nil || !strings.Contains(refused.Error(), part) {
			t.Errorf("start of the second: %v, want %q in it", refused, part)
		}
	}
	cancel()
	if err := <-started; err == nil {
		t.Error("the first has started")
	}
	if got := fmt.Sprint(*opened); got != "[[] []]" {
		t.Errorf("devices %s were opened", got)
	}
}
