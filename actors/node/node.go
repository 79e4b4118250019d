package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/actors/scheduler"
	"github.com/moerack/moerack/messages/subject"
	"github.com/moerack/moerack/model/token"
	"github.com/moerack/moerack/topology"
)

// ErrClosed is what a node that was closed answers.
var ErrClosed = errors.New("node: closed")

// Node is a running node. Its methods may be called from any goroutine.
type Node struct {
	opts       Options
	log        *slog.Logger
	space      subject.Space
	exchange   topology.Exchange
	counts     actors.BusCounts
	system     *actors.System
	strategy   *strategy
	guard      *actors.Supervision // of the supervisor itself
	supervisor *actor.PID
	first      int          // global number of the first of ranks
	nodes      []string     // that have the ranks of the layout, by global number
	ranks      []*rank.Rank // of this node, in order; set by Start before they are spawned
	loaded     []func() int64

	up      chan struct{} // closed when requests are accepted
	failed  chan struct{} // closed by the first fail
	stopped chan struct{} // closed when all actors have stopped
	left    chan struct{} // closed when ranks were left behind
	closed  chan struct{} // closed when nothing is left
	noEnd   chan struct{} // closed when the gateway pushes no more
	rush    chan struct{} // closed by the first Close that waits no longer

	mu       sync.Mutex // guards the fields below
	err      error      // why it failed
	closing  bool       // takes no requests more
	released bool       // an epoch ended while it closes
	rushed   bool       // rush is closed
	behind   error      // names the ranks that were left behind
	modelLen int        // the shortest of the engines
	facts    []actors.RankFacts
	groups   []string            // of this node that are not up
	ledgers  []*scheduler.Ledger // of the node's engines, in order; nil until their ranks are ready
	gateway  *actor.PID
	gone     bool // noEnd is closed
	since    time.Time
	until    time.Time
}

// newText returns the scheduler's way from tokens to text, nil without a tokenizer.
func (n *Node) newText() func() func(id int32) string {
	t := n.opts.Tokenizer
	if t == nil {
		return nil
	}
	return func() func(id int32) string { return token.NewDetokenizer(t, true).Push }
}

// ready takes that requests are accepted from now on. The supervisor calls it, once.
func (n *Node) ready(gateway *actor.PID) {
	n.mu.Lock()
	n.gateway, n.since = gateway, time.Now()
	facts, length := n.facts, n.modelLen
	n.mu.Unlock()
	bytes, blocks := int64(0), facts[0].KVBlocks
	for _, f := range facts {
		bytes += f.WeightBytes
		blocks = min(blocks, f.KVBlocks) // of an engine
	}
	n.log.Info("node is ready", "node", n.opts.Name, "ranks", len(facts), "device", facts[0].Device, "weight_bytes", bytes, "max_model_len", length,
		"kv_blocks", blocks, "block_size", n.opts.BlockSize)
	if n.opts.Checkpoint != nil && n.opts.alone() { // else other nodes use the rest
		if unused := n.opts.Checkpoint.Unused(n.opts.Config.NumLayers); len(unused) > 0 {
			n.log.Warn("the checkpoint has tensors that no layer uses", "tensors", len(unused), "first", unused[:min(3, len(unused))])
		}
	}
	close(n.up)
}

// fail records why the node failed; the first error counts.
func (n *Node) fail(err error) {
	n.mu.Lock()
	first := n.err == nil
	if first {
		n.err = err
		close(n.failed)
	}
	n.mu.Unlock()
	if !first {
		return
	}
	n.system.Root.Send(n.supervisor, &failure{err})
	select { // not under the lock: a log may block
	case <-n.up:
		n.log.Error("node failed", "node", n.opts.Name, "error", err)
	default: // Start returns it
	}
}

// gatewayGone ends streams that nobody serves any more. The supervisor calls it.
func (n *Node) gatewayGone() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.gone {
		n.gone = true
		close(n.noEnd)
	}
}

// cause says why there is nobody to serve a request.
func (n *Node) cause() error {
	if err := n.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// Submit checks a request, turns its text into tokens, and hands it over; the answer comes on the stream. It waits for nothing
// but the tokenizer. It fails if the request is
// faulty (all faults joined), the node has failed or is closed, or ctx has ended; later ctx has no effect on the request:
// Stream.Cancel ends it. The request must not be changed afterwards, what it points to included.
func (n *Node) Submit(ctx context.Context, r actors.Request) (*gateway.Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limits := n.Limits()
	ids, err := gateway.Check(r, limits)
	if err != nil {
		return nil, err
	}
	r.MaxTokens = min(r.MaxTokens, limits.MaxModelLen-len(ids)) // what can come, so that outstanding work is not overstated
	n.mu.Lock()                                                 // until it is sent, so that what Close sends comes behind it
	defer n.mu.Unlock()
	switch {
	case n.err != nil:
		return nil, n.err
	case n.closing:
		return nil, ErrClosed
	}
	root := n.system.Root
	cancel := func(s *gateway.Stream) {
		select {
		case <-n.noEnd:
		default:
			root.Send(n.gateway, &gateway.Cancel{Stream: s})
		}
	}
	s := gateway.NewStream(cancel, n.noEnd, n.cause)
	root.Send(n.gateway, &gateway.Open{Prompt: ids, Request: &r, Stream: s})
	return s, nil
}

// Limits returns what requests are checked against: the effective model length, which may be below the one asked for.
func (n *Node) Limits() gateway.Limits {
	n.mu.Lock()
	defer n.mu.Unlock()
	return gateway.Limits{
		VocabSize: n.opts.Config.VocabSize, MaxModelLen: n.modelLen, Engines: n.opts.Layout.DataParallel, Local: n.opts.engines(),
		Tokenizer: n.opts.Tokenizer, TokenizerErr: n.opts.TokenizerErr,
	}
}

// Done is closed when the node has failed; Err then says why. It serves nothing more, and is still to be closed.
func (n *Node) Done() <-chan struct{} { return n.failed }

// Err returns why the node failed: an error that names the rank or actor and the cause, nil as long as it has not.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}
