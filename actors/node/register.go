package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/actors/coordinator"
	"github.com/moerack/moerack/messages/bus"
	messagesv1 "github.com/moerack/moerack/messages/v1"
)

// A node that the coordinator cannot place yet asks again, after longer and longer pauses: the first is for a coordinator that
// starts with this node, the last for nodes that are started by hand.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// register says over the bus what this node has and returns the devices of its ranks, and the nodes of all. As long as the
// coordinator does not answer, or knows of engines that no node has, it asks again, for StartTimeout at most.
func (n *Node) register(ctx context.Context) (placing, error) {
	limit, cancel := context.WithTimeout(ctx, n.opts.StartTimeout)
	defer cancel()
	request, err := n.registration()
	if err != nil {
		return placing{}, err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		a, err := n.ask(limit, request, pause)
		switch {
		case err != nil:
			return placing{}, err
		case a.absent == nil:
			return a, nil
		}
		select {
		case <-n.failed:
			return placing{}, n.Err()
		case <-ctx.Done():
			return placing{}, fmt.Errorf("%w while it registers: %w", context.Cause(ctx), a.absent)
		case <-limit.Done():
			return placing{}, fmt.Errorf("absent for %s (start-timeout): %w", n.opts.StartTimeout, a.absent)
		case <-time.After(pause):
		}
	}
}

// placing is an answer of the coordinator.
type placing struct {
	devices []int    // of this node's ranks
	nodes   []string // of all ranks of the layout
	absent  error    // who has to come first; nil: nobody
}

func (n *Node) registration() ([]byte, error) {
	digest, err := n.opts.fingerprint()
	if err != nil {
		return nil, err
	}
	e := n.opts.engines()
	return proto.Marshal(&messagesv1.Register{
		Protocol: coordinator.Protocol, Node: n.opts.Name, Host: n.opts.Host, Devices: uint32(min(n.opts.Devices, math.MaxUint32)),
		FirstEngine: uint32(e.From), Engines: uint32(e.To - e.From), Fingerprint: digest,
	})
}

// ask sends one registration and reads the answer. That nobody answers is no error but an absence.
func (n *Node) ask(ctx context.Context, request []byte, patience time.Duration) (placing, error) {
	soon, cancel := context.WithTimeout(ctx, max(patience, time.Second))
	defer cancel()
	data, err := n.opts.Bus.Request(soon, n.space.Register(), request)
	switch {
	case errors.Is(err, bus.ErrNoResponders) || soon.Err() != nil:
		return placing{absent: fmt.Errorf("the coordinator of cluster %q does not answer on bus %s: start the node that has it", n.space.Cluster, n.opts.Bus.Kind())}, nil
	case err != nil:
		return placing{}, fmt.Errorf("registering on bus %s: %w", n.opts.Bus.Kind(), err)
	}
	var a messagesv1.Registered
	if err := messagesv1.Decode(data, &a); err != nil {
		return placing{}, fmt.Errorf("registering: the coordinator's answer is not understood: %w", err)
	}
	return n.read(&a)
}

func (n *Node) read(a *messagesv1.Registered) (placing, error) {
	if a.GetRefusal() != "" {
		return placing{}, fmt.Errorf("the coordinator refuses it: %s", a.GetRefusal())
	}
	if absent := a.GetAbsent(); len(absent) > 0 {
		return placing{absent: fmt.Errorf("no node has %s: start the others", engineList(absent))}, nil
	}
	from, to := n.opts.ranks()
	devices, nodes := make([]int, to-from), make([]string, n.opts.Layout.World())
	found := 0
	for _, d := range a.GetAssignments() {
		r := int(d.GetRank())
		if r < len(nodes) {
			nodes[r] = d.GetNode()
		}
		if r >= from && r < to {
			devices[r-from] = int(d.GetDevice())
			found++
		}
	}
	if found != len(devices) {
		return placing{}, fmt.Errorf("registering: the coordinator assigned devices to %d of ranks %d … %d", found, from, to-1)
	}
	return placing{devices: devices, nodes: nodes}, nil
}

func engineList(engines []uint32) string {
	words := make([]string, len(engines))
	for i, e := range engines {
		words[i] = fmt.Sprint(e)
	}
	if len(words) == 1 {
		return "engine " + words[0]
	}
	return "engines " + strings.Join(words, ", ")
}
