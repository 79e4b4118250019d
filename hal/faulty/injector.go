package faulty

import (
	"context"
	"sync"

	"github.com/moerack/moerack/hal"
)

// Call is one call of an operation of a wrapped device, stream or communicator.
type Call struct {
	Device string // as Describe names it
	Op     string // the method's name; "CommClose" is that of a communicator
	N      int    // how many such calls this device has had, with this one
}

// Rule says which calls an action meets. Fields that are set must all match.
type Rule struct {
	Device string          // empty: any device
	Op     string          // empty: any operation
	N      int             // the n-th call of its operation on its device, from 1; 0: every call
	When   func(Call) bool // may be nil; called with the injector unlocked, by any rank's goroutine
	Limit  int             // how often the rule fires, 0: without limit
	Do     Action
}

// Injector holds rules and counts calls. Its zero value has no rules; it may serve any number of devices and goroutines and must not
// be copied.
type Injector struct {
	mu       sync.Mutex // guards all below and the counts of the rules
	rules    []*Armed
	calls    map[Call]int // N is 0
	released bool
}

// Armed is a rule that was added to an injector.
type Armed struct {
	in      *Injector
	rule    Rule
	fired   int
	removed bool
	hit     chan struct{} // closed when it first fires
	free    chan struct{} // closed when it holds nobody any more
	freed   bool
}

// Add puts a rule behind the others. Of several that match a call the first acts. A rule without an action only counts.
func (in *Injector) Add(r Rule) *Armed {
	in.mu.Lock()
	defer in.mu.Unlock()
	a := &Armed{in: in, rule: r, hit: make(chan struct{}), free: make(chan struct{})}
	if in.released {
		a.freeLocked()
	}
	in.rules = append(in.rules, a)
	return a
}

// Calls returns how often an operation was called on a device, those included that a rule met. An empty device means all.
func (in *Injector) Calls(device, op string) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := 0
	for c, count := range in.calls {
		if c.Op == op && (device == "" || c.Device == device) {
			n += count
		}
	}
	return n
}

// Ops returns how often each operation was called on all devices together.
func (in *Injector) Ops() map[string]int {
	in.mu.Lock()
	defer in.mu.Unlock()
	ops := map[string]int{}
	for c, n := range in.calls {
		ops[c.Op] += n
	}
	return ops
}

// Release ends every delay and hang, and those to come: afterwards no goroutine is held. A test defers it.
func (in *Injector) Release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.released = true
	for _, a := range in.rules {
		a.freeLocked()
	}
}

// Fired returns how often the rule has met a call.
func (a *Armed) Fired() int {
	a.in.mu.Lock()
	defer a.in.mu.Unlock()
	return a.fired
}

// Hit returns a channel that is closed when the rule first meets a call.
func (a *Armed) Hit() <-chan struct{} { return a.hit }

// Release ends the rule's delays and hangs, and those to come.
func (a *Armed) Release() {
	a.in.mu.Lock()
	defer a.in.mu.Unlock()
	a.freeLocked()
}

// Remove takes the rule away; calls it holds stay held until Release.
func (a *Armed) Remove() {
	a.in.mu.Lock()
	defer a.in.mu.Unlock()
	a.removed = true
}

func (a *Armed) freeLocked() {
	if !a.freed {
		a.freed = true
		close(a.free)
	}
}

// call counts a call and carries out the first rule that matches it. Its error means that the call must not reach the device.
func (in *Injector) call(ctx context.Context, device, op string) error {
	in.mu.Lock()
	if in.calls == nil {
		in.calls = map[Call]int{}
	}
	key := Call{Device: device, Op: op}
	in.calls[key]++
	key.N = in.calls[key]
	rules := in.rules
	in.mu.Unlock()
	for _, a := range rules {
		if a.rule.matches(key) && a.fire() {
			if a.rule.Do == nil {
				continue
			}
			return a.rule.Do(ctx, key, a.free)
		}
	}
	return nil
}

func (r *Rule) matches(c Call) bool {
	return (r.Device == "" || r.Device == c.Device) && (r.Op == "" || r.Op == c.Op) && (r.N == 0 || r.N == c.N) && (r.When == nil || r.When(c))
}

// fire counts, and reports whether the rule is still in force.
func (a *Armed) fire() bool {
	a.in.mu.Lock()
	defer a.in.mu.Unlock()
	if a.removed || a.rule.Limit > 0 && a.fired >= a.rule.Limit {
		return false
	}
	if a.fired++; a.fired == 1 {
		close(a.hit)
	}
	return true
}

// fault is an error of a device that was told to fail.
func fault(c Call, class hal.Class, code int, detail string) error {
	return &hal.Error{Op: c.Op, Device: c.Device, Class: class, Code: code, Detail: detail}
}
