package bustest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/moerack/moerack/messages/bus"
)

func testCloseDrains(r *rig) {
	const n = 50
	b := r.buses[0]
	var calls atomic.Int32
	entered, leave := make(chan struct{}), make(chan struct{})
	r.subscribe(b, "work", func(m bus.Message) {
		if calls.Add(1) == 1 {
			close(entered)
			<-leave
		}
		if err := b.Publish("result", m.Data); err != nil {
			r.Errorf("publish while closing: %v", err)
		}
	})
	results, _ := r.listen(r.buses[1], "result")
	arrived, _ := r.listen(b, "work")
	for range n {
		r.publish(r.buses[1], "work", "")
	}
	next(r, "call", entered)
	for range n {
		next(r, "message", arrived)
	}
	closed := make(chan struct{})
	go func() {
		r.close(b)
		close(closed)
	}()
	close(leave)
	next(r, "end of Close", closed)
	if calls.Load() != n {
		r.Errorf("%d calls, want %d", calls.Load(), n)
	}
	for range n {
		next(r, "result", results)
	}
}

func testClosed(r *rig) {
	b := r.buses[0]
	asked, _ := r.listen(r.buses[1], "silent")
	waiting := make(chan error, 1)
	go func() {
		_, err := r.request(b, "silent", "")
		waiting <- err
	}()
	next(r, "request", asked)
	r.close(b)
	if err := next(r, "end of the request", waiting); !errors.Is(err, bus.ErrClosed) {
		r.Errorf("a request that waited: got %v, want ErrClosed", err)
	}
	_, errSubscribe := b.Subscribe("x", func(bus.Message) {})
	_, errRequest := r.request(b, "silent", "")
	for what, err := range map[string]error{"publish": b.Publish("x", nil), "subscribe": errSubscribe, "request": errRequest} {
		if !errors.Is(err, bus.ErrClosed) {
			r.Errorf("%s: got %v, want ErrClosed", what, err)
		}
	}
	r.close(b)
	got, _ := r.listen(r.buses[1], "on")
	r.publish(r.buses[1], "on", "") // the others go on
	next(r, "message", got)
}

func testCloseContext(r *rig) {
	b := r.buses[0]
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	r.subscribe(b, "stuck", func(bus.Message) {
		if calls.Add(1) == 1 {
			close(entered)
			<-leave
			close(left)
		}
	})
	other, _ := r.listen(b, "stuck")
	for range 2 {
		r.publish(r.buses[1], "stuck", "")
	}
	next(r, "call", entered)
	for range 2 {
		next(r, "message", other)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("no time")
	cancel(cause)
	if err := b.Close(ctx); !errors.Is(err, cause) {
		r.Errorf("got %v, want the cause", err)
	}
	if err := b.Publish("x", nil); !errors.Is(err, bus.ErrClosed) {
		r.Errorf("publish: got %v, want ErrClosed", err)
	}
	close(leave)
	next(r, "end of the handler", left)
	r.closeAll()
	if calls.Load() != 1 {
		r.Errorf("%d calls, want none after Close", calls.Load())
	}
}

func testCounts(r *rig) {
	if c := r.buses[0].Counts(); c != (bus.Counts{}) {
		r.Errorf("a new bus has %+v", c)
	}
	got, _ := r.listen(r.buses[1], "count")
	r.subscribe(r.buses[1], "ask", func(m bus.Message) {
		if err := m.Respond(nil); err != nil {
			r.Error(err)
		}
	})
	for range 3 {
		r.publish(r.buses[0], "count", "")
		next(r, "message", got)
	}
	if _, err := r.request(r.buses[0], "ask", ""); err != nil {
		r.Error(err)
	}
	for i, want := range []bus.Counts{{Published: 4, Received: 1}, {Published: 1, Received: 4}} {
		if c := r.buses[i].Counts(); c != want {
			r.Errorf("bus %d has %+v, want %+v", i, c, want)
		}
	}
	if r.buses[0].Kind() == "" || r.buses[0].Kind() != r.buses[1].Kind() {
		r.Errorf("kinds are %q and %q", r.buses[0].Kind(), r.buses[1].Kind())
	}
}
