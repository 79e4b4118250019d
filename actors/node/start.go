package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/actors/scheduler"
	"github.com/moerack/moerack/messages/subject"
	"github.com/moerack/moerack/topology"
)

// root is the name of the supervisor, and the beginning of its children's.
const root = "node"

// Start registers with the coordinator, opens the devices, loads the model, joins the ranks, and returns when requests are
// accepted. It fails with all faults of the options, with what the coordinator or a rank says, when ctx ends, or when nothing
// gets on for StartTimeout; then it names who is absent. A node that failed to start needs no Close; if a rank was still
// loading, that goes on until the loader returns.
func Start(ctx context.Context, o Options) (*Node, error) {
	err := o.Validate()
	if o.Bus == nil {
		err = errors.Join(errors.New("Bus is missing: start one with natsbus.Start"), err)
	}
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Cluster == "" {
		o.Cluster = strings.ToLower(rand.Text())
	}
	exchange, err := topology.ResolveExchange(o.All2AllBackend, o.Layout.EP())
	if err != nil {
		return nil, err
	}
	n := &Node{
		opts: o, log: o.Logger, space: subject.Space{Cluster: o.Cluster}, exchange: exchange,
		up: make(chan struct{}), failed: make(chan struct{}), stopped: make(chan struct{}), left: make(chan struct{}), closed: make(chan struct{}),
		noEnd: make(chan struct{}), rush: make(chan struct{}),
	}
	n.system = actors.NewSystem(o.Logger)
	n.strategy = &strategy{restart: n.supervision(restartBudget), stop: n.supervision(0)}
	n.guard = n.supervision(0)
	n.supervisor = n.pid("")
	props := actor.PropsFromProducer(func() actor.Actor { return newSupervisor(n) }, actor.WithSupervisor(n.strategy), actor.WithGuardian(n.guard))
	if _, err := n.system.Root.SpawnNamed(props, root); err != nil {
		n.system.Shutdown()
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	placed, err := n.register(ctx)
	if err != nil {
		n.giveUp()
		return nil, fmt.Errorf("node %s: start: %w", o.Name, err)
	}
	n.place(placed)
	n.system.Root.Send(n.supervisor, &ranksPlaced{})
	if err := n.await(ctx); err != nil {
		n.giveUp()
		return nil, err
	}
	return n, nil
}

// pid returns the address of a child, also before it is there; "" is the supervisor.
func (n *Node) pid(child string) *actor.PID {
	return actor.NewPID(n.system.Address(), strings.TrimSuffix(root+"/"+child, "/"))
}

// place makes the node's ranks, each with its device, before anyone else sees them.
func (n *Node) place(p placing) {
	n.nodes = p.nodes
	n.first, _ = n.opts.ranks()
	n.facts, n.ledgers = make([]actors.RankFacts, len(p.devices)), make([]*scheduler.Ledger, len(p.devices)/n.opts.Layout.TensorParallel)
	local := n.opts.engines()
	for _, g := range n.opts.Layout.Groups() {
		if slices.ContainsFunc(g.Engines, local.Has) {
			n.groups = append(n.groups, g.Name)
		}
	}
	mem := &memory{ranks: len(p.devices), weights: n.opts.conversionBytes()}
	if mem.weights > 0 {
		n.log.Info("weights are converted as they are loaded", "dtype", n.opts.DType, "memory_bytes", mem.weights)
	}
	tp := n.opts.Layout.TensorParallel
	for i, device := range p.devices {
		open, progress := n.opts.loader(n.first+i, device, mem)
		n.ranks = append(n.ranks, rank.New(rank.Options{
			Rank: n.first + i, TPRank: (n.first + i) % tp, Node: n.opts.Name, BlockSize: n.opts.BlockSize, Logger: n.log, Open: open,
		}))
		n.loaded = append(n.loaded, progress)
	}
}

// loader returns what opens a rank's device, and how far it is in bytes.
func (o Options) loader(rank, device int, mem *memory) (open opening, progress func() int64) {
	if o.load != nil {
		return o.load(rank)
	}
	op := &opener{opts: o, place: o.Layout.Place(rank), device: device, memory: mem}
	return op.open, op.progress
}

// sign is how far a start is. One that differs from the last is progress.
type sign struct {
	bytes  int64
	loads  int // ranks that are ready
	groups int // groups that are not up
}

func (n *Node) sign() (s sign) {
	for i, r := range n.ranks {
		s.bytes += n.loaded[i]()
		if r.State() == "ready" {
			s.loads++
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.groups = len(n.groups)
	return s
}

// await waits until the node is ready or will not be.
func (n *Node) await(ctx context.Context) error {
	limit := n.opts.StartTimeout
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for seen := n.sign(); ; {
		select {
		case <-n.up:
			return nil
		case <-n.failed:
			return n.Err()
		case <-ctx.Done():
			return fmt.Errorf("node %s: start: %w while %s", n.opts.Name, context.Cause(ctx), n.absent())
		case <-timer.C:
			now := n.sign()
			if now == seen {
				return fmt.Errorf("node %s: start: absent: %s, no progress for %s after %d bytes (raise start-timeout if the disk is slow)",
					n.opts.Name, n.absent(), limit, seen.bytes)
			}
			seen = now
			timer.Reset(limit)
		}
	}
}

// absent names who is not there yet: ranks that load, or groups whose first step is not planned.
func (n *Node) absent() string {
	var loading []*rank.Rank
	for _, r := range n.ranks {
		if r.State() != "ready" {
			loading = append(loading, r)
		}
	}
	if len(loading) > 0 {
		return n.doing(loading)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprintf("the ranks of node %s wait for the others of group %s, or for the coordinator's first plan", n.opts.Name, strings.Join(n.groups, ", "))
}

// giveUp ends a node that did not start. A loader that does not return is left to itself.
func (n *Node) giveUp() {
	select {
	case <-n.failed: // device goroutines have ended, or are about to
		abandon(n.ranks)
		_ = n.Close(context.Background()) // waits no longer than grace for those that do not
	default:
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.Close(ended) // begins the end; what is absent has been said
		abandon(n.ranks)   // after that: what they say of it is no failure of the node
	}
}
