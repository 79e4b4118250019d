package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/actors/scheduler"
	"github.com/moerack/moerack/model/token"
)

// ErrClosed is what a node that was closed answers.
var ErrClosed = errors.New("node: closed")

// Node is a running node. Its methods may be called from any goroutine.
type Node struct {
	opts       Options
	log        *slog.Logger
	system     *actors.System
	strategy   *actors.Supervision
	guard      *actors.Supervision // of the supervisor itself
	rank       *rank.Rank
	supervisor *actor.PID

	up      chan struct{} // closed when requests are accepted
	failed  chan struct{} // closed by the first fail
	stopped chan struct{} // closed when all actors have stopped
	closed  chan struct{} // closed when nothing is left
	noEnd   chan struct{} // closed when the gateway pushes no more

	mu      sync.Mutex // guards the fields below
	err     error      // why it failed
	closing bool       // takes no requests more
	facts   actors.RankFacts
	ledger  *scheduler.Ledger
	gateway *actor.PID
	gone    bool // noEnd is closed
	since   time.Time
	until   time.Time
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
func (n *Node) ready(f actors.RankFacts, l *scheduler.Ledger, gateway *actor.PID) {
	n.mu.Lock()
	n.facts, n.ledger, n.gateway, n.since = f, l, gateway, time.Now()
	n.mu.Unlock()
	n.log.Info("node is ready", "node", n.opts.Name, "device", f.Device, "weight_bytes", f.WeightBytes, "max_model_len", f.ModelLen,
		"kv_blocks", f.KVBlocks, "block_size", n.opts.BlockSize)
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
		VocabSize: n.opts.Config.VocabSize, MaxModelLen: n.facts.ModelLen, Engines: 1,
		Tokenizer: n.opts.Tokenizer, TokenizerErr: n.opts.TokenizerErr,
	}
}

// Stats returns the counts since the start, also after Close. Whoever has seen the end of an answer finds it counted.
func (n *Node) Stats() actors.Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := actors.Stats{Ranks: []actors.RankStats{{Rank: 0, WeightBytes: n.facts.WeightBytes, Threads: n.facts.Threads}}}
	until := n.until
	if until.IsZero() {
		until = time.Now()
	}
	s.Seconds = until.Sub(n.since).Seconds()
	n.ledger.AddTo(&s)
	return s
}

// Done is closed when the node has failed; Err then says why. It serves nothing more, and is still to be closed.
func (n *Node) Done() <-chan struct{} { return n.failed }

// Err returns why the node failed: an error that names the rank or actor and the cause, nil as long as it has not.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// Close ends the node: it refuses new requests, ends those that run with FinishAbort, stops the scheduler, lets the step in
// flight end and closes the device, and stops the actors. It waits until nothing is left, or until ctx ends: then it cancels
// the step, returns an error that says what was waited for, and the rest ends by itself. It may be called often and by many;
// it returns nil once all is closed, also if the node had failed.
func (n *Node) Close(ctx context.Context) error {
	n.mu.Lock()
	first := !n.closing
	n.closing = true
	n.mu.Unlock()
	if first {
		n.system.Root.Send(n.supervisor, &shutdown{})
		go n.finish() // ends when the actors and the device goroutine have
	}
	select {
	case <-n.closed:
		return nil
	case <-ctx.Done():
		select {
		case <-n.closed: // both were true
			return nil
		default:
		}
		n.rank.Abandon()
		return fmt.Errorf("node %s: close: %w: rank 0 on node %s is %s, its step in flight or its loading has not ended",
			n.opts.Name, context.Cause(ctx), n.opts.Name, n.rank.State())
	}
}

// finish waits for the end of everything, in the order in which it comes.
func (n *Node) finish() {
	<-n.stopped
	<-n.rank.Done()
	n.strategy.Close()
	n.guard.Close()
	n.system.Shutdown()
	if lost := n.system.DeadLetters(); lost > 0 {
		n.log.Debug("messages that found no receiver", "node", n.opts.Name, "dead_letters", lost)
	}
	n.mu.Lock()
	n.until = time.Now()
	n.mu.Unlock()
	close(n.closed)
}
