package membus

import (
	"slices"

	"github.com/moerack/moerack/messages/bus"
)

// item is a message that waits for a handler.
type item struct {
	data  []byte
	reply *replyTo // nil: no answer is wanted
}

// subscription calls its handler on a goroutine of its own.
type subscription struct {
	bus     *Bus
	subject string
	handler bus.Handler
	more    chan struct{} // capacity 1: look at the fields below

	// Guarded by the network's mu.
	waiting []item
	over    bool // takes nothing more; the goroutine ends when nothing waits
}

// putLocked lets a message wait for the handler.
func (s *subscription) putLocked(m item) {
	if s.over {
		return
	}
	s.waiting = append(s.waiting, m)
	s.wakeLocked()
}

func (s *subscription) wakeLocked() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// run calls the handler for one message after the other until the subscription is over.
func (s *subscription) run() {
	for {
		m, ok := s.next()
		if !ok {
			return
		}
		var respond func(data []byte) error
		if m.reply != nil {
			respond = func(data []byte) error { return s.bus.respond(m.reply, s.subject, data) }
		}
		s.handler(bus.NewMessage(s.subject, m.data, respond))
	}
}

// next waits for a message; false: the goroutine has to end.
func (s *subscription) next() (item, bool) {
	for {
		s.bus.net.mu.Lock()
		if len(s.waiting) > 0 {
			m := s.waiting[0]
			s.waiting[0] = item{}
			s.waiting = s.waiting[1:]
			s.bus.counts.Received++
			s.bus.net.mu.Unlock()
			return m, true
		}
		if s.over {
			s.bus.restLocked()
			s.bus.net.mu.Unlock()
			return item{}, false
		}
		s.bus.net.mu.Unlock()
		<-s.more
	}
}

// Unsubscribe implements bus.Subscription.
func (s *subscription) Unsubscribe() {
	n := s.bus.net
	n.mu.Lock()
	defer n.mu.Unlock()
	s.waiting = nil
	s.endLocked()
	n.subs = slices.DeleteFunc(n.subs, func(t *subscription) bool { return t == s })
}

// endLocked takes nothing more; what waits is still handled.
func (s *subscription) endLocked() {
	s.over = true
	s.wakeLocked()
}
