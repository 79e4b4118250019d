package cpu

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// job is work that can be cut into items, which do not depend on one another and may run at once. What an item computes depends on
// its number alone, never on who runs it: thread 0 is the caller of run, the others are its helpers.
type job interface {
	item(i, thread int)
}

// pool is the threads of a device: that of its rank, which calls run, and helpers. A helper that is awake takes items of whatever
// job runs; one that sleeps is woken for jobs that are worth it and joins when it comes: nobody waits for it. Without work it
// looks for a new job for a moment and then sleeps, so an idle pool costs nothing.
//
// A ticket holds a job's number, its items and the next one to be taken, so a helper that comes late can tell from the ticket alone
// that nothing is left, and touches a job only when it holds one of its items: then the job cannot end before that item.
type pool struct {
	threads int // with the caller
	job     job
	fault   atomic.Pointer[fault] // of the running job
	ticket  atomic.Uint64
	done    atomic.Int32  // items of the running job
	waits   atomic.Bool   // the rank sleeps until the last item is done
	wake    chan struct{} // one token for the rank: look again
	asleep  atomic.Int32  // helpers
	alarm   chan struct{} // a token wakes one helper
	over    chan struct{} // closed at the end
	helpers sync.WaitGroup
}

// fault is what an item panicked with.
type fault struct{ value any }

const (
	itemBits = 20 // at most a million items, and as many helpers that come late
	itemMask = 1<<itemBits - 1
	// looks is for how long a thread looks before it sleeps. Waking one takes some 50 µs; ops of a step follow each other faster.
	looks = 60 * time.Microsecond
	// worthWaking is the cost of a job, in multiplications, from which sleeping helpers are woken.
	worthWaking = 1 << 18
)

// newPool starts a pool of so many threads, the caller's included. cpus are the processors of the helpers, nil for any.
func newPool(threads int, cpus []int) *pool {
	p := &pool{threads: threads, wake: make(chan struct{}, 1), alarm: make(chan struct{}, threads), over: make(chan struct{})}
	for i := range threads - 1 {
		p.helpers.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
			if i+1 < len(cpus) {
				pin(cpus[i+1])
			}
			debug.SetPanicOnFault(true) // as on the rank's own thread
			p.help(i + 1)
		})
	}
	return p
}

// close ends the helpers and waits for them. No job may run.
func (p *pool) close() {
	close(p.over)
	p.helpers.Wait()
}

// run runs all items of j and returns when they are done. cost is the whole job's, in multiplications. A panic of an item comes out
// of run. One thread calls run.
func (p *pool) run(j job, items, cost int) {
	if items > itemMask {
		panic("cpu: more items than a ticket can count")
	}
	if items == 1 || p.threads == 1 {
		for i := range items {
			j.item(i, 0)
		}
		return
	}
	p.job = j
	p.fault.Store(nil)
	p.done.Store(0)
	round := p.ticket.Load()>>(2*itemBits) + 1
	p.ticket.Store(round<<(2*itemBits) | uint64(items)<<itemBits)
	if cost >= worthWaking {
		for range min(int(p.asleep.Load()), items-1) {
			select {
			case p.alarm <- struct{}{}:
			default:
			}
		}
	}
	for {
		i, _, ok := p.take()
		if !ok {
			break
		}
		p.do(i, items, 0)
	}
	p.await(items)
	p.job = nil
	if f := p.fault.Load(); f != nil {
		panic(f.value)
	}
}

// take claims an item of the job that runs.
func (p *pool) take() (item, items int, ok bool) {
	t := p.ticket.Add(1) - 1
	item, items = int(t&itemMask), int(t>>itemBits&itemMask)
	return item, items, item < items
}

func (p *pool) do(item, items, thread int) {
	defer func() {
		if v := recover(); v != nil {
			p.fault.CompareAndSwap(nil, &fault{v})
		}
		if int(p.done.Add(1)) == items && p.waits.Load() {
			select {
			case p.wake <- struct{}{}:
			default: // a token is there: it will look
			}
		}
	}()
	p.job.item(item, thread)
}

// await waits for the items that helpers have.
func (p *pool) await(items int) {
	if look(func() bool { return int(p.done.Load()) == items }) {
		return
	}
	p.waits.Store(true)
	for int(p.done.Load()) != items {
		<-p.wake // a token left over costs a look
	}
	p.waits.Store(false)
}

// help takes items until the pool is closed.
func (p *pool) help(thread int) {
	for {
		seen := p.ticket.Load()
		if next, all := seen&itemMask, seen>>itemBits&itemMask; next < all {
			for {
				i, items, ok := p.take()
				if !ok {
					break
				}
				p.do(i, items, thread)
			}
			continue
		}
		round := seen >> (2 * itemBits)
		if look(func() bool { return p.ticket.Load()>>(2*itemBits) != round }) {
			continue
		}
		p.asleep.Add(1)
		select {
		case <-p.alarm:
			p.asleep.Add(-1)
		case <-p.over:
			return
		}
	}
}

// look waits for a moment until ok holds.
func look(ok func() bool) bool {
	for begin := time.Now(); ; {
		for range 64 {
			if ok() {
				return true
			}
		}
		if time.Since(begin) > looks {
			return false
		}
	}
}
