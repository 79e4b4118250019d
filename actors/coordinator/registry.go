package coordinator

import (
	"bytes"
	"fmt"
	"time"

	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

// Protocol is the version of the messages between nodes and coordinator. All nodes of a cluster speak the same one.
const Protocol = 1

// forgetAfter is how long a node that does not ask again is remembered while others are absent. Nodes ask at least every half
// second; one that was refused or has ended must not stand in the way of its successor.
const forgetAfter = 5 * time.Second

// registry is the pure core of registration: which node has which engines and devices. It has no clock: now is the time since any
// moment that does not change.
type registry struct {
	layout topology.Layout
	nodes  []registered
	placed []topology.Assignment // once all engines are there; nothing changes from then on
}

type registered struct {
	*v1.Register
	asked time.Duration
}

// onRegister answers a node's request. placed reports whether this was the node that completed the layout.
func (r *registry) onRegister(now time.Duration, m *v1.Register) (answer *v1.Registered, placed bool) {
	if m.Protocol != Protocol {
		return &v1.Registered{Refusal: fmt.Sprintf("node %s speaks version %d of the protocol, the coordinator version %d: run the same release on all nodes",
			m.Node, m.Protocol, Protocol)}, false
	}
	nodes := r.others(now, m)
	for _, n := range nodes {
		if !bytes.Equal(n.Fingerprint, m.Fingerprint) {
			return &v1.Registered{Refusal: fmt.Sprintf("node %s has another model or other settings than node %s: "+
				"the checkpoint, the layout and the limits must be equal on all nodes", m.Node, n.Node)}, false
		}
	}
	nodes = append(nodes, registered{m, now})
	assigned, absent, err := topology.AssignDevices(r.layout, devices(nodes))
	if err != nil {
		return &v1.Registered{Refusal: err.Error()}, false
	}
	r.nodes = nodes
	if len(absent) > 0 {
		return &v1.Registered{Absent: numbers(absent)}, false
	}
	placed = r.placed == nil
	r.placed = assigned
	answer = &v1.Registered{}
	for _, a := range assigned {
		answer.Assignments = append(answer.Assignments, &v1.Assignment{Rank: uint32(a.Rank), Device: uint32(a.Device), Node: a.Node})
	}
	return answer, placed
}

// others returns the nodes that stand beside one that asks: those that still ask themselves, or all once they have their devices.
func (r *registry) others(now time.Duration, m *v1.Register) []registered {
	var others []registered
	for _, n := range r.nodes {
		again := n.Node == m.Node && n.Host == m.Host && n.Devices == m.Devices && n.FirstEngine == m.FirstEngine && n.Engines == m.Engines &&
			bytes.Equal(n.Fingerprint, m.Fingerprint)
		if !again && (r.placed != nil || now-n.asked < forgetAfter) {
			others = append(others, n)
		}
	}
	return others
}

func devices(nodes []registered) []topology.NodeDevices {
	out := make([]topology.NodeDevices, len(nodes))
	for i, n := range nodes {
		out[i] = topology.NodeDevices{
			Node: n.Node, Host: n.Host, Devices: int(n.Devices), FirstEngine: int(n.FirstEngine), Engines: int(n.Register.Engines),
		}
	}
	return out
}

// nodeOf returns the node of each engine, once all are there.
func (r *registry) nodeOf() map[int]string {
	out := map[int]string{}
	for _, a := range r.placed {
		out[a.Rank/r.layout.TensorParallel] = a.Node
	}
	return out
}
