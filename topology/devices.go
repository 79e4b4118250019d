package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// NodeDevices is what a node says of itself before devices are assigned.
type NodeDevices struct {
	Node        string // unique in the cluster
	Host        string // identity of the machine: nodes with the same one share its devices
	Devices     int    // of the host, numbered from 0
	FirstEngine int
	Engines     int // the node has engines FirstEngine … FirstEngine+Engines−1
}

// Assignment gives a rank its device.
type Assignment struct {
	Rank   int // global
	Node   string
	Device int // number on the node's host
}

// AssignDevices gives each rank of a layout that was validated a device of its node's host: the k-th engine of a host, in the order of engines
// over all of the host's nodes, gets devices k·TensorParallel …, one for each TP rank. The order of nodes does not matter.
//
// absent are the engines that no node has, ascending. While there are some nothing is assigned: they may come, and shift the
// others. err joins all faults that no further node could mend.
func AssignDevices(l Layout, nodes []NodeDevices) (assigned []Assignment, absent []int, err error) {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b NodeDevices) int {
		return cmp.Or(cmp.Compare(a.FirstEngine, b.FirstEngine), cmp.Compare(a.Node, b.Node))
	})
	var faults []error
	faults = append(faults, checkNames(nodes)...)
	owners := make([]*NodeDevices, l.DataParallel) // by engine
	for i := range nodes {
		n := &nodes[i]
		if fault := l.checkEngines(n); fault != nil {
			faults = append(faults, fault)
			continue
		}
		faults = append(faults, claim(owners, n)...)
	}
	assigned, more := l.place(owners)
	faults = append(faults, checkHosts(nodes)...)
	faults = append(faults, more...)
	for e, n := range owners {
		if n == nil {
			absent = append(absent, e)
		}
	}
	if len(faults) > 0 || len(absent) > 0 {
		assigned = nil
	}
	return assigned, absent, errors.Join(faults...)
}

func checkNames(nodes []NodeDevices) []error {
	var faults []error
	count := map[string]int{}
	for _, n := range nodes {
		if count[n.Node]++; count[n.Node] == 2 {
			faults = append(faults, fmt.Errorf("node-name=%s is used by more than one node: give each its own", n.Node))
		}
	}
	return faults
}

func (l Layout) checkEngines(n *NodeDevices) error {
	if n.Engines < 1 {
		return fmt.Errorf("node %s has %d engines: data-parallel-size-local must be at least 1", n.Node, n.Engines)
	}
	if n.FirstEngine < 0 || n.FirstEngine >= l.DataParallel || n.Engines > l.DataParallel-n.FirstEngine {
		return fmt.Errorf("node %s has %s, the layout %s (data-parallel-size=%d): change its data-parallel-start-rank or data-parallel-size-local",
			n.Node, span("engine", n.FirstEngine, n.FirstEngine+n.Engines), span("engine", 0, l.DataParallel), l.DataParallel)
	}
	return nil
}

// claim enters a node as the owner of its engines that are free, and returns a fault for each node that has some of them.
func claim(owners []*NodeDevices, n *NodeDevices) []error {
	var faults []error
	for e := n.FirstEngine; e < n.FirstEngine+n.Engines; e++ {
		if owners[e] == nil {
			owners[e] = n
			continue
		}
		from, other := e, owners[e]
		for e+1 < n.FirstEngine+n.Engines && owners[e+1] == other {
			e++
		}
		faults = append(faults, fmt.Errorf("%s: claimed by node %s and by node %s: change data-parallel-start-rank or data-parallel-size-local of one",
			span("engine", from, e+1), other.Node, n.Node))
	}
	return faults
}

// checkHosts returns the faults of what nodes say of their hosts.
func checkHosts(nodes []NodeDevices) []error {
	var faults []error
	first, told := map[string]NodeDevices{}, map[string]bool{}
	for _, n := range nodes {
		if n.Devices < 1 {
			faults = append(faults, fmt.Errorf("node %s: host %s has no device: cpu-devices must be at least 1", n.Node, n.Host))
		}
		f, ok := first[n.Host]
		switch {
		case !ok:
			first[n.Host] = n
		case f.Devices != n.Devices && !told[n.Host]:
			told[n.Host] = true
			faults = append(faults, fmt.Errorf("host %s has %d devices for node %s and %d for node %s: make cpu-devices equal", n.Host, f.Devices, f.Node, n.Devices, n.Node))
		}
	}
	return faults
}

// place numbers the ranks of each host, and returns a fault for every host that has too many.
func (l Layout) place(owners []*NodeDevices) (assigned []Assignment, faults []error) {
	type overflow struct {
		rank, device int
		node         *NodeDevices
	}
	used, over := map[string]int{}, map[string]overflow{}
	var hosts []string // with too many ranks
	for e, n := range owners {
		if n == nil {
			continue
		}
		from, to := l.Ranks(e)
		for r := from; r < to; r++ {
			device := used[n.Host]
			used[n.Host]++
			assigned = append(assigned, Assignment{Rank: r, Node: n.Node, Device: device})
			if _, told := over[n.Host]; !told && device >= n.Devices && n.Devices > 0 {
				over[n.Host] = overflow{r, device, n}
				hosts = append(hosts, n.Host)
			}
		}
	}
	for _, h := range hosts {
		o := over[h]
		faults = append(faults, l.tooMany(o.rank, o.device, o.node, used[h]))
	}
	return assigned, faults
}

// tooMany says that a rank is the first of a host's ranks without a device, and what would help.
func (l Layout) tooMany(rank, device int, n *NodeDevices, ranks int) error {
	engines := ranks / l.TensorParallel
	help := fmt.Sprintf("raise cpu-devices to %d", ranks)
	if most := n.Devices / l.TensorParallel; most > 0 {
		help += fmt.Sprintf(", or give the host at most %d of data-parallel-size=%d engines instead of %d", most, l.DataParallel, engines)
	}
	if most := n.Devices / engines; most > 0 {
		help += fmt.Sprintf(", or lower tensor-parallel-size=%d to at most %d", l.TensorParallel, most)
	}
	if n.Devices < l.TensorParallel && n.Devices < engines {
		help += ", or lower data-parallel-size and tensor-parallel-size"
	}
	return fmt.Errorf("rank %d on node %s needs device %d of host %s, which has %d (%s) for %d ranks: %s",
		rank, n.Node, device, n.Host, n.Devices, span("device", 0, n.Devices), ranks, help)
}
