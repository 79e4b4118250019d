package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/model/nn"
)

// grace is how long a rank of a failed node may go on without progress before Close leaves it behind.
const grace = 500 * time.Millisecond

// Close ends the node: it refuses new requests, ends those that run with FinishAbort, drains the engines, that is, steps go on
// until all members of a group have none, lets the steps in flight end, stops the actors and closes communicators and devices.
// The other nodes of a cluster are told, which takes half a second at most if they do not answer; their requests that need this node
// end with an error that names it. Close waits until nothing is left, or until ctx ends: then it cancels the steps, returns an error that says what was waited for,
// and the rest ends by itself. Draining takes no longer than StallTimeout: other nodes may go on for ever. It may be called
// often and by many; it returns nil once all is closed, also if the node had failed.
//
// A rank of a failed node may hang in an operation that nothing can end. Close does not wait for it: it returns an error that
// names what was left behind, and once that ends by itself, Close returns nil.
func (n *Node) Close(ctx context.Context) error {
	n.mu.Lock()
	first := !n.closing
	n.closing = true
	n.mu.Unlock()
	if first {
		n.system.Root.Send(n.supervisor, &shutdown{})
		go n.finish() // ends when the actors and the device goroutines have
	}
	select {
	case <-n.closed:
		return nil
	case <-n.left:
		select {
		case <-n.closed: // both were true
			return nil
		default:
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		return fmt.Errorf("node %s: close: left behind: %w", n.opts.Name, n.behind)
	case <-ctx.Done():
		select {
		case <-n.closed: // both were true
			return nil
		default:
		}
		n.hurry()
		return fmt.Errorf("node %s: close: %w: %w", n.opts.Name, context.Cause(ctx), n.unfinished(n.running()))
	}
}

// hurry asks for an end without waiting: steps are cancelled. Those who meet in them hear first that the node is closed, so the supervisor
// does it as long as it is there.
func (n *Node) hurry() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.rushed {
		n.rushed = true
		close(n.rush)
	}
	n.system.Root.Send(n.supervisor, &hurry{})
}

// finish waits for the end of everything, in the order in which it comes.
func (n *Node) finish() {
	<-n.stopped
	if stuck := n.stuck(); len(stuck) > 0 {
		abandon(stuck)
		behind := n.unfinished(stuck)
		n.mu.Lock()
		n.behind = behind
		n.mu.Unlock()
	}
	n.strategy.close()
	n.guard.Close()
	n.system.Shutdown()
	if lost := n.system.DeadLetters(); lost > 0 {
		n.log.Debug("messages that found no receiver", "node", n.opts.Name, "dead_letters", lost)
	}
	n.mu.Lock()
	n.until = time.Now()
	behind := n.behind != nil
	n.mu.Unlock()
	if behind {
		close(n.left)
	}
	for _, r := range n.ranks {
		<-r.Done()
	}
	close(n.closed)
}

// stuck waits until all ranks have ended and returns those that will not: ranks of a failed node, or one that a verdict has released, that
// for the grace time have not got on. Otherwise every rank is waited for.
func (n *Node) stuck() []*rank.Rank {
	tick := time.NewTicker(grace / 10)
	defer tick.Stop()
	moved, seen := time.Now(), n.moves()
	rush := n.rush
	for _, r := range n.ranks {
		for wait := true; wait; {
			select {
			case <-r.Done():
				wait = false
			case <-rush:
				abandon(n.running())
				rush = nil
			case <-tick.C:
				if now := n.moves(); now != seen || !n.over() {
					moved, seen = time.Now(), now
				} else if time.Since(moved) >= grace {
					return n.running()
				}
			}
		}
	}
	return nil
}

// release takes that a verdict came while the node closes.
func (n *Node) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.released = true
}

// over reports whether the node has failed, or was released.
func (n *Node) over() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err != nil || n.released
}

// moves sums what the ranks count of their progress.
func (n *Node) moves() (sum uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.facts {
		if f.Progress != nil {
			sum += f.Progress.Read().Moves
		}
	}
	return sum
}

// running returns the ranks that have not ended.
func (n *Node) running() (list []*rank.Rank) {
	for _, r := range n.ranks {
		select {
		case <-r.Done():
		default:
			list = append(list, r)
		}
	}
	return list
}

// abandon cancels what ranks are doing.
func abandon(list []*rank.Rank) {
	for _, r := range list {
		r.Abandon()
	}
}

// unfinished returns an error that says what ranks are doing.
func (n *Node) unfinished(list []*rank.Rank) error {
	if len(list) == 0 {
		return errors.New("actors have not stopped")
	}
	return errors.New(n.doing(list))
}

// doing says what ranks are doing: "rank 0 on node a is ready; rank 1 on node a is stopping, in step 5: layer 2: attention".
func (n *Node) doing(list []*rank.Rank) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var words []string
	for i, r := range n.ranks {
		if !slices.Contains(list, r) {
			continue
		}
		w := fmt.Sprintf("rank %d on node %s is %s", n.first+i, n.opts.Name, r.State())
		if p := n.facts[i].Progress; p != nil {
			if pos := p.Read(); pos.Running {
				w += ", " + where(pos)
			}
		}
		words = append(words, w)
	}
	return strings.Join(words, "; ")
}

// where says where in a step a rank is.
func where(pos nn.Position) string {
	s := fmt.Sprintf("in step %d", pos.Step)
	if pos.Op.Layer >= 0 {
		s += fmt.Sprintf(": layer %d", pos.Op.Layer)
	}
	if pos.Op.Name != "" {
		s += ": " + string(pos.Op.Name)
	}
	return s
}
