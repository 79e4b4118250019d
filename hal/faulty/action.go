package faulty

import (
	"context"
	"fmt"
	"time"

	"github.com/moerack/moerack/hal"
)

// Action is what happens to a call, in the goroutine that makes it. A nil error lets the call go on to the device. Free is closed
// when the rule is released; ctx is the call's own, or never ends where the method has none.
type Action func(ctx context.Context, c Call, free <-chan struct{}) error

// Delay holds a call for a time, or until the rule is released or its context ends, and lets it go on. With d = 0 only the last two
// count.
func Delay(d time.Duration) Action {
	return func(ctx context.Context, _ Call, free <-chan struct{}) error {
		var over <-chan time.Time
		if d > 0 {
			t := time.NewTimer(d)
			defer t.Stop()
			over = t.C
		}
		select {
		case <-over:
		case <-free:
		case <-ctx.Done():
		}
		return nil
	}
}

// Fail fails a call with a class and the code of a vendor, 0 if there is none.
func Fail(class hal.Class, code int) Action {
	return func(_ context.Context, c Call, _ <-chan struct{}) error {
		return fault(c, class, code, "failed as told")
	}
}

// Lack fails a call as a device does that has no such ability, for example Join where there are no communicators.
func Lack() Action {
	return func(_ context.Context, c Call, _ <-chan struct{}) error {
		return fault(c, hal.CallerFault, 0, "this device has no such ability")
	}
}

// Hang holds a call until the rule is released or its context ends. The call never reaches the device: it fails, so that nothing runs
// long after others stopped waiting for it.
func Hang() Action {
	return func(ctx context.Context, c Call, free <-chan struct{}) error {
		select {
		case <-free:
			return fault(c, hal.DeviceLost, 0, "hung as told, now released")
		case <-ctx.Done():
			return &hal.Error{Op: c.Op, Device: c.Device, Class: hal.DeviceLost, Detail: "hung as told", Err: ctx.Err()}
		}
	}
}

// Die panics with a *Death in the goroutine of the rank.
func Die() Action {
	return func(_ context.Context, c Call, _ <-chan struct{}) error { panic(&Death{c}) }
}

// Death is what Die panics with.
type Death struct{ Call }

// Error names the call.
func (d *Death) Error() string {
	return fmt.Sprintf("%s: %s: call %d died as told", d.Device, d.Op, d.N)
}
