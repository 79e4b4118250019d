package bustest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/moerack/moerack/messages/bus"
)

// cases are the contract, in its order.
var cases = []struct {
	name string
	run  func(r *rig)
}{
	{"publish reaches all who subscribe and no other", testPublish},
	{"order is kept for each publisher", testOrder},
	{"data is the publisher's again, and each handler's own", testOwnership},
	{"what is too large or no subject is refused", testRefusals},
	{"one call at a time", testOneAtATime},
	{"a handler may use its bus", testFromHandler},
	{"unsubscribe ends it", testUnsubscribe},
	{"request and answer", testRequest},
	{"an answer may come later", testLateAnswer},
	{"the first answer counts", testFirstAnswer},
	{"nobody answers", testNoResponders},
	{"a request ends with its context", testRequestContext},
	{"nothing to respond to", testNoReply},
	{"close handles what has arrived", testCloseDrains},
	{"close ends what waits and what comes later", testClosed},
	{"close gives up when its context ends", testCloseContext},
	{"counts", testCounts},
}

func testPublish(r *rig) {
	var all []<-chan bus.Message
	for _, b := range append(r.buses, r.buses[0]) { // one bus twice
		c, _ := r.listen(b, "a.b")
		all = append(all, c)
	}
	others := make(chan bus.Message, 100)
	for _, s := range []string{"a", "a.b.c", "a.B", "a.bb", "b.a"} {
		r.subscribe(r.buses[1], s, func(m bus.Message) { others <- m })
	}
	for _, b := range r.buses {
		r.publish(b, "a.b", "hello")
		for _, c := range all {
			if m := next(r, "message", c); m.Subject != "a.b" || string(m.Data) != "hello" {
				r.Errorf("got %q on %s", m.Data, m.Subject)
			}
		}
	}
	r.closeAll()
	if len(others) > 0 {
		r.Errorf("%d messages on other subjects, the first on %s", len(others), (<-others).Subject)
	}
	for _, c := range all {
		if len(c) > 0 {
			r.Error("a message came twice")
		}
	}
}

func testOrder(r *rig) {
	const each = 1000
	got, _ := r.listen(r.buses[0], "order")
	var wg sync.WaitGroup
	for p, b := range r.buses {
		wg.Go(func() {
			for i := range each {
				if err := b.Publish("order", fmt.Appendf(nil, "%d %d", p, i)); err != nil {
					r.Error(err)
				}
			}
		})
	}
	wg.Wait()
	last := make([]int, len(r.buses))
	for range each * len(r.buses) {
		var p, i int
		m := next(r, "message", got)
		if _, err := fmt.Sscanf(string(m.Data), "%d %d", &p, &i); err != nil {
			r.Fatalf("%q: %v", m.Data, err)
		}
		if i != last[p] {
			r.Fatalf("publisher %d: got message %d, want %d", p, i, last[p])
		}
		last[p]++
	}
}

func testOwnership(r *rig) {
	one, _ := r.listen(r.buses[1], "own")
	two, _ := r.listen(r.buses[1], "own")
	data := []byte("first")
	for range 2 {
		if err := r.buses[0].Publish("own", data); err != nil {
			r.Fatal(err)
		}
		copy(data, "other")
	}
	a := next(r, "message", one)
	clear(a.Data)
	if b := next(r, "message", two); string(b.Data) != "first" {
		r.Errorf("got %q, want %q", b.Data, "first")
	}
	next(r, "message", one)
	next(r, "message", two)
	if !bytes.Equal(a.Data, make([]byte, len("first"))) {
		r.Errorf("kept data became %q", a.Data)
	}
}

func testRefusals(r *rig) {
	b := r.buses[0]
	for _, s := range []string{"", ".", "a.", "a..b", "a.*", ">", "a b", "a\r\nb"} {
		_, errSubscribe := b.Subscribe(s, func(bus.Message) {})
		_, errRequest := r.request(b, s, "")
		for _, err := range []error{b.Publish(s, nil), errSubscribe, errRequest} {
			if !errors.Is(err, bus.ErrSubject) {
				r.Errorf("subject %q: got %v, want ErrSubject", s, err)
			}
		}
	}
	got, _ := r.listen(b, "large")
	huge := make([]byte, 64<<20) // above what any transport takes
	_, errRequest := r.request(b, "large", string(huge))
	for _, err := range []error{b.Publish("large", huge), errRequest} {
		if !errors.Is(err, bus.ErrTooLarge) {
			r.Errorf("got %v, want ErrTooLarge", err)
		}
	}
	r.publish(b, "large", string(huge[:512<<10]))
	if n := len(next(r, "message", got).Data); n != 512<<10 {
		r.Errorf("got %d bytes, want 512 KiB", n)
	}
	r.publish(b, "large", "")
	if n := len(next(r, "message", got).Data); n != 0 {
		r.Errorf("got %d bytes, want none", n)
	}
}

func testOneAtATime(r *rig) {
	const n = 200
	var inside, most atomic.Int32
	var done sync.WaitGroup
	done.Add(n * len(r.buses))
	r.subscribe(r.buses[0], "one", func(bus.Message) {
		most.Store(max(most.Load(), inside.Add(1)))
		inside.Add(-1)
		done.Done()
	})
	for range n {
		for _, b := range r.buses {
			r.publish(b, "one", "")
		}
	}
	done.Wait()
	if most.Load() != 1 {
		r.Errorf("%d calls at once", most.Load())
	}
}
