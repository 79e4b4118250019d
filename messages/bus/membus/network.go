// Package membus is the bus inside one process, without a server: for tests, on fake time too (testing/synctest). It is reliable
// and immediate unless told otherwise; then it loses, doubles, delays and reorders messages as its seed says. It does not bound
// what waits for a slow handler.
package membus

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Options say how a network treats messages. The zero value is reliable and immediate.
type Options struct {
	Seed      uint64        // of all chance. A bus that sends the same in the same order meets the same fate.
	Loss      float64       // chance that a message does not arrive at a subscription, 0 … 1
	Duplicate float64       // chance that one that arrives does so twice, 0 … 1
	Delay     time.Duration // a message takes from 0 to Delay, evenly spread: later ones overtake. 0: it is there at once, in order.
}

// Network is what its buses share. Its methods may be called from any goroutine.
type Network struct {
	opts Options

	// mu guards the fields below and those of all buses and subscriptions. Nothing blocks or calls out while it is held.
	mu    sync.Mutex
	subs  []*subscription // in the order of Subscribe
	buses uint64          // connected so far
}

// New makes a network without buses.
func New(o Options) *Network { return &Network{opts: o} }

// Connect makes a bus on the network.
func (n *Network) Connect() *Bus {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buses++
	return &Bus{
		net:     n,
		chance:  rand.New(rand.NewPCG(n.opts.Seed, n.buses)),
		replies: map[uint64]chan<- []byte{},
		flights: map[*flight]struct{}{},
		closing: make(chan struct{}),
		closed:  make(chan struct{}),
	}
}

// publishLocked sends a message to all subscriptions of a subject and returns how many there are.
func (n *Network) publishLocked(from *Bus, subject string, data []byte, reply *replyTo) int {
	found := 0
	for _, s := range n.subs {
		if s.subject != subject {
			continue
		}
		found++
		m := item{data: slices.Clone(data), reply: reply}
		n.sendLocked(from, s.bus, func() { s.putLocked(m) })
	}
	return found
}

// sendLocked lets arrive be called with mu held, as often and as late as chance wants: at once if there is no delay.
func (n *Network) sendLocked(from, to *Bus, arrive func()) {
	if from.isolated || from.chance.Float64() < n.opts.Loss {
		return
	}
	copies := 1
	if from.chance.Float64() < n.opts.Duplicate {
		copies = 2
	}
	for range copies {
		if n.opts.Delay <= 0 {
			to.arriveLocked(arrive)
			continue
		}
		to.expectLocked(time.Duration(from.chance.Int64N(int64(n.opts.Delay)+1)), arrive)
	}
}
