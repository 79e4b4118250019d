package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// graceTime is how long work that an interrupt ends may take to end in order. What takes longer, such as a step that hangs, is
// left to the end of the process.
const graceTime = 5 * time.Second

// sameSignal is how soon a second signal is still the first one: who ends a process and then its group, as timeout(1) does,
// sends two at once.
const sameSignal = 300 * time.Millisecond

// errGraceOver is the cause of a context of grace that has ended.
var errGraceOver = fmt.Errorf("%v after the interrupt are over", graceTime)

// watch is what becomes of signals. Until the command has something to end in order, the first one ends the process.
type watch struct{ orderly atomic.Bool }

// interruptible returns a context that the first signal cancels with the cause errInterrupted, if the command is orderly by
// then. A signal before that, or a second one, ends the process at once. stop ends the watch and must be called.
func (h Host) interruptible() (ctx context.Context, w *watch, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	w = &watch{}
	done := make(chan struct{})
	// Ends with stop.
	go func() {
		var first time.Time
		for {
			select {
			case <-done:
				return
			case <-h.Signals:
			}
			now := time.Now()
			switch {
			case !w.orderly.Load():
				fmt.Fprintf(h.Stderr, "moectl: %v\n", errInterrupted)
				h.Exit(exitInterrupted)
				return
			case first.IsZero():
				first = now
				cancel(errInterrupted)
			case now.Sub(first) >= sameSignal:
				h.Exit(exitInterrupted)
				return
			}
		}
	}()
	return ctx, w, func() { close(done); cancel(nil) }
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
