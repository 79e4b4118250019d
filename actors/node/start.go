package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/rank"
)

// supervision of the node's actors: a fault that comes back at once is not worth more tries.
const (
	restartBudget   = 3
	restartWindow   = time.Minute
	restartDelay    = 50 * time.Millisecond
	restartDelayMax = 2 * time.Second
)

// Start opens the device, loads the model and returns when requests are accepted. It fails with all faults of the options,
// with what the rank says, when ctx ends, or when loading makes no progress for StartTimeout; then it names who is absent. A
// node that failed to start needs no Close; if a rank was still loading, that goes on until the loader returns.
func Start(ctx context.Context, o Options) (*Node, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{
		opts: o, log: o.Logger,
		up: make(chan struct{}), failed: make(chan struct{}), stopped: make(chan struct{}), closed: make(chan struct{}), noEnd: make(chan struct{}),
	}
	open, progress := o.loader(0)
	n.rank = rank.New(rank.Options{Rank: 0, Node: o.Name, Epoch: epoch, BlockSize: o.BlockSize, Logger: o.Logger, Open: open})
	n.system = actors.NewSystem(o.Logger)
	n.strategy = n.supervision(restartBudget)
	n.guard = n.supervision(0)
	props := actor.PropsFromProducer(func() actor.Actor { return &supervisor{node: n} }, actor.WithSupervisor(n.strategy), actor.WithGuardian(n.guard))
	pid, err := n.system.Root.SpawnNamed(props, "node")
	if err != nil {
		n.system.Shutdown()
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	n.supervisor = pid
	if err := n.await(ctx, progress); err != nil {
		return nil, errors.Join(err, n.giveUp())
	}
	return n, nil
}

// supervision makes a strategy that fails the node when it gives a child up.
func (n *Node) supervision(budget int) *actors.Supervision {
	return &actors.Supervision{
		Budget: budget, Window: restartWindow, Delay: restartDelay, MaxDelay: restartDelayMax, Logger: n.log,
		GiveUp: func(_ *actor.PID, err error) { n.fail(fmt.Errorf("node %s: %w", n.opts.Name, err)) },
	}
}

// loader returns what opens a rank's device, and how far it is in bytes.
func (o Options) loader(index int) (open func(context.Context) (rank.Opened, error), progress func() int64) {
	if o.load != nil {
		return o.load(index)
	}
	op := &opener{opts: o, index: index}
	return op.open, op.progress
}

// await waits until the node is ready or will not be.
func (n *Node) await(ctx context.Context, progress func() int64) error {
	limit := n.opts.StartTimeout
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for seen := progress(); ; {
		select {
		case <-n.up:
			return nil
		case <-n.failed:
			return n.Err()
		case <-ctx.Done():
			return fmt.Errorf("node %s: start: %w while rank 0 on node %s is %s", n.opts.Name, context.Cause(ctx), n.opts.Name, n.rank.State())
		case <-timer.C:
			now := progress()
			if now == seen {
				return fmt.Errorf("node %s: start: absent: rank 0 on node %s: %s, no progress for %s after %d bytes (raise start-timeout if the disk is slow)",
					n.opts.Name, n.opts.Name, n.rank.State(), limit, seen)
			}
			seen = now
			timer.Reset(limit)
		}
	}
}

// giveUp ends a node that did not start. A loader that does not return is left to itself.
func (n *Node) giveUp() error {
	n.rank.Abandon()
	select {
	case <-n.failed: // the device goroutine has ended, or is about to
		return n.Close(context.Background())
	default:
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.Close(ended) // begins the end; what is absent has been said
		return nil
	}
}
