package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/messages/bus"
)

// The bounds of the orderly end of a node; graceTime is that after an interrupt. A step that takes longer is left to the end of the
// process.
const (
	closeTimeout  = 30 * time.Second
	failedTimeout = 2 * time.Second // of a node that has failed: there is nothing left to save
	lastTime      = time.Second     // for the bus, if the node has used all there was
)

// Causes of a context of closing that has ended.
var (
	errCloseOver  = fmt.Errorf("%v for an orderly end are over", closeTimeout)
	errFailedOver = fmt.Errorf("%v after the failure are over", failedTimeout)
)

// nodeOnBus is a node and the bus that was connected for it.
type nodeOnBus struct {
	*node.Node
	bus bus.Bus
}

// Close closes the node, then the bus. A node that has used all the time is no fault of the bus, which gets a little more.
func (n *nodeOnBus) Close(ctx context.Context) error {
	err := n.Node.Close(ctx)
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
		defer cancel()
		ctx = last
	}
	return errors.Join(err, n.bus.Close(ctx))
}

// closer is what end needs of a node.
type closer interface {
	Close(ctx context.Context) error
	Done() <-chan struct{} // closed when it has failed
	Stats() actors.Stats
}

// closing returns a context for the end of a node: it ends with late, after closeTimeout, or failedTimeout after the node has failed.
// stop must be called.
func closing(late context.Context, failed <-chan struct{}) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(late)
	usual := time.AfterFunc(closeTimeout, func() { cancel(errCloseOver) })
	go func() { // ends with ctx
		select {
		case <-failed:
		case <-ctx.Done():
			return
		}
		soon := time.AfterFunc(failedTimeout, func() { cancel(errFailedOver) })
		<-ctx.Done()
		soon.Stop()
	}()
	return ctx, func() { usual.Stop(); cancel(nil) }
}

// end closes the node, writes the counters, and returns what the run ends with instead of err. After an interrupt that is the
// interrupt, whatever else went wrong.
func (g *generation) end(ctx, late context.Context, n closer, err error) error {
	closing, stop := closing(late, n.Done())
	defer stop()
	closeErr := n.Close(closing)
	statsErr := g.stats.write(n.Stats())
	if interrupted(ctx) {
		if closeErr != nil {
			g.log.Warn("what still runs is left to the end of the process", "error", closeErr)
		}
		if errors.Is(err, errInterrupted) {
			return errors.Join(err, statsErr)
		}
		return errors.Join(errInterrupted, err, statsErr)
	}
	if end := errors.Join(closeErr, statsErr); end != nil {
		g.complain(end)
		return errors.Join(err, reportedError{exitFailure})
	}
	return err
}
