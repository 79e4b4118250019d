package cli

import (
	"context"
	"errors"
)

// interruptible returns a context that the first signal cancels with the cause errInterrupted. A second signal ends the
// process at once. stop ends the watch and must be called.
func (h Host) interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	// Ends with stop.
	go func() {
		for first := true; ; first = false {
			select {
			case <-done:
				return
			case <-h.Signals:
			}
			if !first {
				h.Exit(exitInterrupted)
				return
			}
			cancel(errInterrupted)
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}

// interrupted reports whether a signal ended ctx.
func interrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errInterrupted) }
