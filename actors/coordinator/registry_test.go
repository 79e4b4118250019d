package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

// asks is a node's registration: name, host, first engine and number of engines, of a host with 4 devices.
func asks(node, host string, first, engines uint32, change ...func(*v1.Register)) *v1.Register {
	m := &v1.Register{Protocol: Protocol, Node: node, Host: host, Devices: 4, FirstEngine: first, Engines: engines, Fingerprint: []byte("model")}
	for _, f := range change {
		f(m)
	}
	return m
}

// told is an answer in words.
func told(a *v1.Registered) string {
	var words []string
	for _, d := range a.Assignments {
		words = append(words, fmt.Sprintf("%d:%s:%d", d.Rank, d.Node, d.Device))
	}
	if len(a.Absent) > 0 {
		words = append(words, fmt.Sprintf("absent %v", a.Absent))
	}
	if a.Refusal != "" {
		words = append(words, "refused: "+a.Refusal)
	}
	return strings.Join(words, " ")
}

func TestRegistration(t *testing.T) {
	r := registry{layout: topology.Layout{DataParallel: 3, TensorParallel: 2}}
	const all = "0:a:0 1:a:1 2:b:0 3:b:1 4:c:2 5:c:3"
	for _, tt := range []struct {
		name   string
		at     time.Duration
		m      *v1.Register
		want   string // the answer begins with it
		placed bool
	}{
		{"the first waits", 0, asks("a", "h", 0, 1), "absent [1 2]", false},
		{"it asks again", 400 * time.Millisecond, asks("a", "h", 0, 1), "absent [1 2]", false},
		{"another version", second, asks("b", "g", 1, 1, func(m *v1.Register) { m.Protocol = 9 }), "refused: node b speaks version 9 of the protocol, the coordinator version 1", false},
		{"another model", second, asks("b", "g", 1, 1, func(m *v1.Register) { m.Fingerprint = nil }), "refused: node b has another model or other settings than node a", false},
		{"engines that are taken", second, asks("b", "g", 0, 2), "refused: engine 0: claimed by node a and by node b", false},
		{"engines that the layout does not have", second, asks("b", "g", 2, 4000000000), "refused: node b has engines", false},
		{"no engine", second, asks("b", "g", 1, 0), "refused: node b has 0 engines", false},
		{"too few devices", second, asks("b", "g", 1, 1, func(m *v1.Register) { m.Devices = 1 }), "refused: rank 3 on node b needs device 1 of host g", false},
		{"a name that is taken", second, asks("a", "g", 1, 1), "refused: node-name=a is used by more than one node", false},
		{"the refused can come back", 2 * second, asks("b", "g", 1, 1), "absent [2]", false},
		{"the last one", 3 * second, asks("c", "h", 2, 1), all, true},
		{"the first hears of it", 4 * second, asks("a", "h", 0, 1), all, false},
		{"also much later", time.Hour, asks("b", "g", 1, 1), all, false},
		{"nobody can come now", time.Hour, asks("d", "i", 1, 1), "refused: engine 1: claimed by node b and by node d", false},
		{"nor with another number of devices", time.Hour, asks("a", "h", 0, 1, func(m *v1.Register) { m.Devices = 8 }), "refused: node-name=a", false},
	} {
		answer, placed := r.onRegister(tt.at, tt.m)
		if got := told(answer); !strings.HasPrefix(got, tt.want) || placed != tt.placed {
			t.Errorf("%s: %s, placed %v; want %s, placed %v", tt.name, got, placed, tt.want, tt.placed)
		}
	}
	if got := fmt.Sprint(r.nodeOf()); got != "map[0:a 1:b 2:c]" {
		t.Errorf("engines are on %s", got)
	}
}

// TestRegistrationIsForgotten: a node that has stopped asking while others were absent is not in the way of its successor.
func TestRegistrationIsForgotten(t *testing.T) {
	r := registry{layout: topology.Layout{DataParallel: 2, TensorParallel: 1}}
	r.onRegister(0, asks("a", "h", 0, 1, func(m *v1.Register) { m.Fingerprint = []byte("old settings") }))
	if a, _ := r.onRegister(second, asks("a", "h", 0, 1)); a.Refusal == "" {
		t.Errorf("a node of the same name a second later: %s", told(a))
	}
	if a, _ := r.onRegister(forgetAfter, asks("a", "h", 0, 1)); len(a.Absent) != 1 {
		t.Errorf("its successor: %s", told(a))
	}
}
