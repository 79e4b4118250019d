package topology

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestAssignDevices(t *testing.T) {
	node := func(name, host string, devices, first, engines int) NodeDevices {
		return NodeDevices{Node: name, Host: host, Devices: devices, FirstEngine: first, Engines: engines}
	}
	for _, tt := range []struct {
		name   string
		layout Layout
		nodes  []NodeDevices
		want   string // rank@node:device …
		absent []int
		faults []string // one line each
	}{
		{name: "one node", layout: Layout{2, 2, true}, nodes: []NodeDevices{node("a", "h", 4, 0, 2)}, want: "0@a:0 1@a:1 2@a:2 3@a:3"},
		{
			name: "two nodes of one host share its devices", layout: Layout{2, 1, true},
			nodes: []NodeDevices{node("a", "h", 2, 0, 1), node("b", "h", 2, 1, 1)}, want: "0@a:0 1@b:1",
		},
		{
			name: "two hosts count apart", layout: Layout{2, 1, true},
			nodes: []NodeDevices{node("a", "h", 1, 0, 1), node("b", "i", 1, 1, 1)}, want: "0@a:0 1@b:0",
		},
		{
			name: "the order of nodes does not matter, that of engines does", layout: Layout{4, 2, false},
			nodes: []NodeDevices{node("c", "h", 4, 3, 1), node("b", "i", 4, 1, 2), node("a", "h", 4, 0, 1)},
			want:  "0@a:0 1@a:1 2@b:0 3@b:1 4@b:2 5@b:3 6@c:2 7@c:3",
		},
		{name: "nobody yet", layout: Layout{2, 1, true}, absent: []int{0, 1}},
		{name: "some are absent", layout: Layout{4, 1, true}, nodes: []NodeDevices{node("b", "h", 4, 1, 2)}, absent: []int{0, 3}},
		{
			name: "a rank too many", layout: Layout{4, 1, false}, nodes: []NodeDevices{node("a", "h", 1, 0, 4)},
			faults: []string{"rank 1 on node a needs device 1 of host h, which has 1 (device 0) for 4 ranks: raise cpu-devices to 4, or give the host at most 1 of data-parallel-size=4 engines instead of 4"},
		},
		{
			name: "TP could be lower", layout: Layout{2, 4, false}, nodes: []NodeDevices{node("a", "h", 4, 0, 1), node("b", "h", 4, 1, 1)},
			faults: []string{"rank 4 on node b needs device 4 of host h, which has 4 (devices 0 … 3) for 8 ranks: raise cpu-devices to 8, or give the host at most 1 of data-parallel-size=2 engines instead of 2, or lower tensor-parallel-size=4 to at most 2"},
		},
		{
			name: "neither DP nor TP alone helps", layout: Layout{3, 3, false}, nodes: []NodeDevices{node("a", "h", 2, 0, 3)},
			faults: []string{"rank 2 on node a needs device 2 of host h, which has 2 (devices 0 … 1) for 9 ranks: raise cpu-devices to 9, or lower data-parallel-size and tensor-parallel-size"},
		},
		{
			name: "too many though others are absent", layout: Layout{3, 2, false}, nodes: []NodeDevices{node("b", "h", 1, 1, 1)}, absent: []int{0, 2},
			faults: []string{"rank 3 on node b needs device 1 of host h, which has 1 (device 0) for 2 ranks: raise cpu-devices to 2, or lower tensor-parallel-size=2 to at most 1"},
		},
		{
			name: "claimed twice", layout: Layout{4, 1, true}, nodes: []NodeDevices{node("b", "i", 8, 1, 3), node("a", "h", 8, 0, 3), node("c", "i", 8, 2, 1)},
			faults: []string{
				"engines 1 … 2: claimed by node a and by node b: change data-parallel-start-rank or data-parallel-size-local of one",
				"engine 2: claimed by node a and by node c: change data-parallel-start-rank or data-parallel-size-local of one",
			},
		},
		{
			name: "outside the layout", layout: Layout{4, 1, true},
			nodes: []NodeDevices{node("a", "h", 8, 0, 4), node("b", "h", 8, 2, 3), node("c", "h", 8, -1, 2), node("d", "h", 8, 0, 0), node("e", "h", 8, 4, 1)},
			faults: []string{
				"node c has engines -1 … 0, the layout engines 0 … 3 (data-parallel-size=4): change its data-parallel-start-rank or data-parallel-size-local",
				"node d has 0 engines: data-parallel-size-local must be at least 1",
				"node b has engines 2 … 4, the layout engines 0 … 3 (data-parallel-size=4): change its data-parallel-start-rank or data-parallel-size-local",
				"node e has engine 4, the layout engines 0 … 3 (data-parallel-size=4): change its data-parallel-start-rank or data-parallel-size-local",
			},
		},
		{
			name: "names and hosts", layout: Layout{4, 1, true},
			nodes: []NodeDevices{node("a", "h", 2, 0, 1), node("a", "h", 3, 1, 1), node("c", "h", 2, 2, 1), node("d", "i", 0, 3, 1)},
			faults: []string{
				"node-name=a is used by more than one node: give each its own",
				"host h has 2 devices for node a and 3 for node a: make cpu-devices equal",
				"node d: host i has no device: cpu-devices must be at least 1",
				"rank 2 on node c needs device 2 of host h, which has 2 (devices 0 … 1) for 3 ranks: raise cpu-devices to 3, or give the host at most 2 of data-parallel-size=4 engines instead of 3",
			},
		},
	} {
		assigned, absent, err := AssignDevices(tt.layout, tt.nodes)
		var got []string
		for _, a := range assigned {
			got = append(got, fmt.Sprintf("%d@%s:%d", a.Rank, a.Node, a.Device))
		}
		if s := strings.Join(got, " "); s != tt.want || !reflect.DeepEqual(absent, tt.absent) {
			t.Errorf("%s: assigned %q, absent %v, want %q, %v", tt.name, s, absent, tt.want, tt.absent)
		}
		if want := strings.Join(tt.faults, "\n"); text(err) != want {
			t.Errorf("%s:\n%v\nwant\n%s", tt.name, err, want)
		}
	}
}

// TestAssignmentIsInjective holds random clusters to it: every rank has one device, on the host of its engine's node, and no device has
// two ranks; the devices of a host are used from 0 without a gap, in the order of ranks.
func TestAssignmentIsInjective(t *testing.T) {
	const seed = 14
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		l := Layout{1 + r.IntN(12), 1 + r.IntN(4), true}
		var nodes []NodeDevices
		host := map[string]string{}
		for e := 0; e < l.DataParallel; {
			n := NodeDevices{Node: fmt.Sprint("n", e), Host: fmt.Sprint("h", r.IntN(3)), Devices: l.World(), FirstEngine: e, Engines: 1 + r.IntN(l.DataParallel-e)}
			nodes, host[n.Node] = append(nodes, n), n.Host
			e += n.Engines
		}
		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		assigned, absent, err := AssignDevices(l, nodes)
		if err != nil || absent != nil || len(assigned) != l.World() {
			t.Fatalf("%+v over %+v: %d ranks assigned, absent %v, %v", l, nodes, len(assigned), absent, err)
		}
		used := map[string]int{}
		for i, a := range assigned {
			if h := host[a.Node]; a.Rank != i || a.Device != used[h] {
				t.Fatalf("%+v over %+v: assignment %d is %+v, want device %d", l, nodes, i, a, used[h])
			}
			used[host[a.Node]]++
		}
	}
}
