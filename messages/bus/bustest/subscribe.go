package bustest

import (
	"sync/atomic"

	"github.com/moerack/moerack/messages/bus"
)

func testFromHandler(r *rig) {
	b := r.buses[0]
	got, _ := r.listen(r.buses[1], "second")
	failed := make(chan error, 3)
	var own bus.Subscription
	ready := make(chan struct{})
	own = r.subscribe(b, "first", func(bus.Message) {
		<-ready
		failed <- b.Publish("second", []byte("by a handler"))
		s, err := b.Subscribe("third", func(bus.Message) {})
		failed <- err
		if err == nil {
			s.Unsubscribe()
		}
		own.Unsubscribe()
		b.Counts()
		failed <- nil
	})
	close(ready)
	r.publish(r.buses[1], "first", "")
	for range 3 {
		if err := next(r, "end of the handler", failed); err != nil {
			r.Error(err)
		}
	}
	if m := next(r, "message", got); string(m.Data) != "by a handler" {
		r.Errorf("got %q", m.Data)
	}
}

func testUnsubscribe(r *rig) {
	b := r.buses[0]
	var calls atomic.Int32
	entered, leave := make(chan struct{}), make(chan struct{})
	s := r.subscribe(b, "end", func(bus.Message) {
		if calls.Add(1) == 1 {
			close(entered)
			<-leave
		}
	})
	other, _ := r.listen(b, "end")
	for range 10 { // nine wait behind the first
		r.publish(r.buses[1], "end", "")
	}
	next(r, "call", entered)
	for range 10 {
		next(r, "message", other)
	}
	s.Unsubscribe()
	s.Unsubscribe()
	close(leave)
	r.publish(r.buses[1], "end", "")
	next(r, "message", other)
	again, _ := r.listen(b, "end")
	r.publish(r.buses[1], "end", "")
	next(r, "message", again)
	r.closeAll() // nothing is handled afterwards
	if n := calls.Load(); n != 1 {
		r.Errorf("%d calls, want the one that was under way", n)
	}
}
