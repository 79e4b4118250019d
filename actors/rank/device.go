package rank

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
)

// device is the goroutine that owns the rank's device, and the queue before it. start, offer and stop are called by the actor.
type device struct {
	opts    Options
	jobs    chan *job // capacity 1: at most one step waits behind the running one
	done    chan struct{}
	ctx     context.Context //nolint:containedctx // the goroutine's life, ended by cancel
	cancel  context.CancelFunc
	started bool
	stopped bool
}

// job is a step on its way to the device; its answer goes to sender, also if the actor was restarted meanwhile.
type job struct {
	step   *actors.Step
	sender *actor.PID
}

// opened tells the actor how opening ended.
type opened struct {
	facts actors.RankFacts
	err   error
}

// result tells the actor how a job ended.
type result struct {
	sender *actor.PID
	done   *actors.StepDone
}

func newDevice(o Options) *device {
	ctx, cancel := context.WithCancel(context.Background())
	return &device{opts: o, jobs: make(chan *job, 1), done: make(chan struct{}), ctx: ctx, cancel: cancel}
}

// start begins the goroutine, at the first call. It ends after stop, when the job in flight has ended.
func (d *device) start(root *actor.RootContext, self *actor.PID) {
	if d.started {
		return
	}
	d.started = true
	go d.run(root, self)
}

// offer hands over a job without waiting; false if one waits already.
func (d *device) offer(j *job) bool {
	select {
	case d.jobs <- j:
		return true
	default:
		return false
	}
}

// stop lets the goroutine end after what it is doing and what waits.
func (d *device) stop() {
	if !d.stopped {
		d.stopped = true
		close(d.jobs)
	}
}

func (d *device) run(root *actor.RootContext, self *actor.PID) {
	defer close(d.done)
	runtime.LockOSThread()      // never unlocked: the thread ends with this goroutine
	debug.SetPanicOnFault(true) // a weight file that shrinks under its mapping faults: a panic, which is recovered, not the end of the process
	defer d.cancel()
	o, err := d.open()
	if err == nil {
		defer d.close(o)
	}
	root.Send(self, &opened{facts: o.Facts, err: err})
	if err != nil {
		return // the actor is failed and offers nothing
	}
	e := newExecutor(d.opts, o)
	for j := range d.jobs {
		root.Send(self, &result{sender: j.sender, done: e.execute(d.ctx, j.step)})
	}
}

// open opens the device, turning a panic into an error.
func (d *device) open() (o Opened, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.opts.Logger.Error("panic on the device thread", "rank", d.opts.Rank, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("rank %d on node %s: while loading: %w", d.opts.Rank, d.opts.Node, panicError(p))
		}
	}()
	if o, err = d.opts.Open(d.ctx); err != nil {
		return Opened{}, fmt.Errorf("rank %d on node %s: %w", d.opts.Rank, d.opts.Node, err)
	}
	return o, nil
}

// close frees model and device. After a lost device this may fail in any way; that is logged and no more.
func (d *device) close(o Opened) {
	err := errors.Join(guard(func() error { o.Model.Close(); return nil }), guard(o.Close))
	if err != nil {
		d.opts.Logger.Warn("device did not close cleanly", "rank", d.opts.Rank, "error", err)
	}
}

func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// IgnoreDeadLetterLogging marks what may come after the actor has stopped, which is no fault.
func (*opened) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging marks what may come after the actor has stopped, which is no fault.
func (*result) IgnoreDeadLetterLogging() {}
