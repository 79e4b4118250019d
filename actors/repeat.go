package actors

import "time"

// The times between two copies of a message.
const (
	firstRepeat = 50 * time.Millisecond
	lastRepeat  = time.Second
)

// Repeat says when a message that was not answered goes out again: 50, 100, 200 … ms after the copy before, at most a second. It
// has no clock of its own: now is the time since any moment that does not change. The zero value is stopped.
type Repeat struct {
	on         bool
	due, delay time.Duration
	copies     int
}

// Start says that the message went out for the first time.
func (r *Repeat) Start(now time.Duration) {
	*r = Repeat{on: true, due: now + firstRepeat, delay: firstRepeat}
}

// Stop says that the message was answered.
func (r *Repeat) Stop() { *r = Repeat{} }

// On reports whether an answer is waited for.
func (r *Repeat) On() bool { return r.on }

// Copies returns how many copies went out since Start.
func (r *Repeat) Copies() int { return r.copies }

// Due reports whether a copy has to go out now, and counts it as sent.
func (r *Repeat) Due(now time.Duration) bool {
	if !r.on || now < r.due {
		return false
	}
	r.delay = min(2*r.delay, lastRepeat)
	r.due = now + r.delay
	r.copies++
	return true
}

// Next returns when the next copy is due; ok is false if none is.
func (r *Repeat) Next() (at time.Duration, ok bool) { return r.due, r.on }
