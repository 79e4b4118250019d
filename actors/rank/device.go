package rank

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
)

// device is the goroutine that owns the rank's device, and the queue before it. start, offer, ended and stop are called by the actor.
type device struct {
	opts    Options
	jobs    chan job
	taken   int // jobs whose end the actor has not heard of, at most mostJobs; the actor's
	done    chan struct{}
	ctx     context.Context //nolint:containedctx // the goroutine's life, ended by cancel
	cancel  context.CancelFunc
	joining context.Context    //nolint:containedctx // the life of joins, ended by stop: who stops does not wait for the absent
	unjoin  context.CancelFunc // ends joining
	started bool
	stopped bool
}

// job is a step or a join on its way to the device; its answer goes to sender, also if the actor was restarted meanwhile.
type job struct {
	step   *actors.Step // or
	join   *actors.Join
	sender *actor.PID
}

// opened tells the actor how opening ended.
type opened struct {
	facts actors.RankFacts
	err   error
}

// result tells the actor how a step ended.
type result struct {
	sender *actor.PID
	done   *actors.StepDone
}

// met tells the actor how a join ended.
type met struct {
	sender *actor.PID
	joined *actors.Joined
}

func newDevice(o Options) *device {
	d := &device{opts: o, jobs: make(chan job, mostJobs), done: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.joining, d.unjoin = context.WithCancel(d.ctx)
	return d
}

// start begins the goroutine, at the first call. It ends after stop, when the job in flight has ended.
func (d *device) start(root *actor.RootContext, self *actor.PID) {
	if d.started {
		return
	}
	d.started = true
	go d.run(root, self)
}

// mostJobs is how many jobs a device has at once: one that runs and one that waits.
const mostJobs = 2

// offer hands over a job without waiting; false if one waits already. A job counts until the actor calls ended: its goroutine may
// not have taken the next one when it is known to be over.
func (d *device) offer(j job) bool {
	if d.taken == mostJobs {
		return false
	}
	d.taken++
	d.jobs <- j
	return true
}

// ended takes that a job is over.
func (d *device) ended() { d.taken-- }

// stop lets the goroutine end after what it is doing and what waits; a join ends at once.
func (d *device) stop() {
	if !d.stopped {
		d.stopped = true
		d.unjoin()
		close(d.jobs)
	}
}

func (d *device) run(root *actor.RootContext, self *actor.PID) {
	defer close(d.done)
	runtime.LockOSThread()      // never unlocked: the thread ends with this goroutine
	debug.SetPanicOnFault(true) // a weight file that shrinks under its mapping faults: a panic, which is recovered, not the end of the process
	defer d.cancel()
	o, err := d.open()
	if err != nil {
		root.Send(self, &opened{err: err})
		return // the actor is failed and offers nothing
	}
	e := newExecutor(d.opts, o)
	m := &member{opts: d.opts, opened: o}
	defer func() { d.close(m, o) }()
	root.Send(self, &opened{facts: o.Facts})
	for j := range d.jobs {
		if j.join != nil {
			joined := m.join(d.joining, j.join)
			e.epoch(joined.Err == nil && len(joined.Comms) > 0)
			root.Send(self, &met{sender: j.sender, joined: joined})
			continue
		}
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

// close frees communicators, model and device. After a lost device this may fail in any way; that is logged and no more.
func (d *device) close(m *member, o Opened) {
	for _, err := range []error{m.leave(), guard(func() error { o.Model.Close(); return nil }), guard(o.Close)} {
		if err != nil && hal.ClassOf(err) != hal.Aborted {
			d.opts.Logger.Warn("device did not close cleanly", "rank", d.opts.Rank, "error", err)
		}
	}
}

func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	return f()
}

// IgnoreDeadLetterLogging marks what may come after the actor has stopped, which is no fault.
func (*opened) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging marks what may come after the actor has stopped, which is no fault.
func (*result) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging marks what may come after the actor has stopped, which is no fault.
func (*met) IgnoreDeadLetterLogging() {}
