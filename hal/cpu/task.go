package cpu

import (
	"slices"
	"sync/atomic"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

// A long operation is cut into parts, which the threads of the device share. Between two of its parts the rank's thread pulses, so that
// the operation is not taken for one that hangs, and looks whether it is still wanted. Parts are outputs, rows or heads, which do not
// depend on one another: their size, which follows the clock and the number of threads, changes no bit.

// pulse says that work of op has been done, or that it begins to wait for other ranks. An error says that it is not wanted any more.
func (d *device) pulse(op string, waits bool) error {
	if d.onPulse == nil {
		return nil
	}
	if err := d.onPulse(waits); err != nil {
		return &hal.Error{Op: op, Device: d.name, Class: hal.Aborted, Detail: "the work is not wanted any more", Err: err}
	}
	return nil
}

// wanted pulses and reports whether op may go on; if not, the stream has the error.
func (s *stream) wanted(op string) bool {
	s.err = s.dev.pulse(op, false)
	for _, c := range s.dev.comms {
		if s.err == nil {
			s.err = c.m.aborted(op, c.group.Rank)
		}
	}
	return s.err == nil
}

// task is the operation that runs: what it works on, and its parts. Its memory is used again by the next one.
type task struct {
	s       *stream
	op      string
	kind    work
	do      func(t *task, p *part, thread int) // captures nothing: what does would be allocated at every op
	parts   []part
	stopped atomic.Bool // the operation is not wanted any more

	segments []segment           // of products
	operands                     // of all others
	slots    [][2]kernels.Weight // by thread: what is passed through a table of functions would else go to the heap
	scratch  []float32           // by thread
	bytes    []int8              // by thread
	each     int                 // floats of scratch for a thread
}

// part is a range of outputs or rows of a segment, and of heads where the op has some.
type part struct {
	segment, from, to, head, headTo int
	cost                            int // multiplications
}

// operands of ops that are cut by rows or heads.
type operands struct {
	out, x, y kernels.Mat
	w         kernels.Weight
	vector    []float32
	eps       float32
	seqs      []int32
	positions []int32
	heads     kernels.HeadMatMul
	rope      kernels.Rope
	attention kernels.MLAAttention
	up        kernels.Weight // beside w
	expanded  hal.MLAExpanded
	tables    kernels.Ints
	rows8     kernels.Rows8
}

// begin makes the stream's task ready for the parts of an op, with so many floats of scratch for each thread.
func (s *stream) begin(op string, kind work, scratch int, do func(*task, *part, int)) *task {
	t, threads := &s.task, s.dev.pool.threads
	t.s, t.op, t.kind, t.do, t.parts, t.each = s, op, kind, do, t.parts[:0], scratch
	t.stopped.Store(false)
	if len(t.slots) < threads {
		t.slots = make([][2]kernels.Weight, threads)
	}
	t.scratch = slices.Grow(t.scratch[:0], threads*scratch)[:threads*scratch]
	return t
}

// item runs a part. The rank's own thread, which is number 0, also measures and pulses.
func (t *task) item(i, thread int) {
	if t.stopped.Load() {
		return
	}
	p := &t.parts[i]
	if thread > 0 {
		t.do(t, p, thread)
		return
	}
	pace := &t.s.dev.pace
	start := pace.start(p.cost)
	t.do(t, p, 0)
	pace.took(t.kind, p.cost, start)
	if !t.s.wanted(t.op) {
		t.stopped.Store(true)
	}
}

// run shares the parts over the threads and forgets the operands.
func (t *task) run() {
	cost := 0
	for i := range t.parts {
		cost += t.parts[i].cost
	}
	for from := 0; from < len(t.parts); from += itemMask { // once, but for monsters
		t.s.dev.pool.run(t, min(len(t.parts)-from, itemMask), cost)
	}
	t.operands = operands{}
}

// perThread is how many parts of an op each thread gets, about: so many that one which is held up does not hold up the others for long.
const perThread = 4

// worthSharing is the least that a thread is given, in multiplications: some microseconds of work.
const worthSharing = 1 << 15

// units returns how many outputs or rows, of so many multiplications each, make a part when the whole op costs so much: few enough for all
// threads and for the device's pace, and a multiple of align.
func (t *task) units(each, cost, align int) int {
	d := t.s.dev
	n := d.pace.units(t.kind, each)
	if threads := d.pool.threads; threads > 1 {
		n = min(n, max(1, max(cost/(perThread*threads), worthSharing)/max(1, each)))
	}
	return max(1, n/align*align, min(n, align))
}

// rows cuts so many rows, of so many multiplications each, into parts and runs them.
func (t *task) rows(total, each int) {
	n := t.units(each, total*each, 1)
	for from := 0; from < total; from += n {
		to := min(from+n, total)
		t.parts = append(t.parts, part{from: from, to: to, cost: (to - from) * each})
	}
	t.run()
}
