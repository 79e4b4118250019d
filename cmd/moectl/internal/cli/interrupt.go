package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// graceTime is how long work that an interrupt ends may take to end in order. What takes longer, such as a step that hangs, is
// left to the end of the process.
const graceTime = 5 * time.Second

// errGraceOver is the cause of a context of grace that has ended.
var errGraceOver = fmt.Errorf("%v after the interrupt are over", graceTime)

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

// grace returns a context that ends graceTime after ctx, for waiting until work ends in order. stop must be called.
func grace(ctx context.Context) (late context.Context, stop func()) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(graceTime, func() { cancel(errGraceOver) })
		context.AfterFunc(late, func() { timer.Stop() })
	})
	return late, func() { unwatch(); cancel(nil) }
}
