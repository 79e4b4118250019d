package bustest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/moerack/moerack/messages/bus"
)

func testRequest(r *rig) {
	r.subscribe(r.buses[1], "ask", func(m bus.Message) {
		if err := m.Respond(append([]byte("re: "), m.Data...)); err != nil {
			r.Error(err)
		}
	})
	var wg sync.WaitGroup
	for p, b := range r.buses {
		for c := range 4 { // requests at the same time, also to the own bus
			wg.Go(func() {
				for i := range 50 {
					text := fmt.Sprint(p, c, i)
					if answer, err := r.request(b, "ask", text); err != nil || answer != "re: "+text {
						r.Errorf("got %q, %v", answer, err)
					}
				}
			})
		}
	}
	wg.Wait()
}

func testLateAnswer(r *rig) {
	got, _ := r.listen(r.buses[1], "ask")
	answers := make(chan string, 1)
	go func() {
		answer, err := r.request(r.buses[0], "ask", "")
		answers <- fmt.Sprint(answer, " ", err)
	}()
	m := next(r, "request", got)
	data := []byte("late")
	if err := m.Respond(data); err != nil {
		r.Error(err)
	}
	clear(data) // the caller's again
	if a := next(r, "answer", answers); a != "late <nil>" {
		r.Errorf("got %s", a)
	}
	if err := m.Respond([]byte("nobody waits")); err != nil { // the sender cannot know
		r.Error(err)
	}
}

func testFirstAnswer(r *rig) {
	for _, b := range r.buses {
		r.subscribe(b, "ask", func(m bus.Message) {
			for range 2 {
				if err := m.Respond(m.Data); err != nil {
					r.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		if answer, err := r.request(r.buses[0], "ask", fmt.Sprint(i)); err != nil || answer != fmt.Sprint(i) {
			r.Errorf("request %d: got %q, %v", i, answer, err)
		}
	}
}

func testNoResponders(r *rig) {
	if _, err := r.request(r.buses[0], "nobody", ""); !errors.Is(err, bus.ErrNoResponders) {
		r.Errorf("got %v, want ErrNoResponders", err)
	}
	_, s := r.listen(r.buses[0], "nobody")
	s.Unsubscribe()
	if _, err := r.request(r.buses[0], "nobody", ""); !errors.Is(err, bus.ErrNoResponders) {
		r.Errorf("after an unsubscription: got %v, want ErrNoResponders", err)
	}
}

func testRequestContext(r *rig) {
	got, _ := r.listen(r.buses[1], "silent")
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := r.buses[0].Request(ctx, "silent", nil)
		ended <- err
	}()
	next(r, "request", got)
	cause := errors.New("changed my mind")
	cancel(cause)
	if err := next(r, "end of the request", ended); !errors.Is(err, cause) {
		r.Errorf("got %v, want the cause", err)
	}
	short, end := context.WithTimeout(context.Background(), 1)
	defer end()
	if _, err := r.buses[0].Request(short, "silent", nil); !errors.Is(err, context.DeadlineExceeded) {
		r.Errorf("got %v, want DeadlineExceeded", err)
	}
}

func testNoReply(r *rig) {
	got, _ := r.listen(r.buses[1], "plain")
	r.publish(r.buses[0], "plain", "")
	m := next(r, "message", got)
	if err := m.Respond(nil); !errors.Is(err, bus.ErrNoReply) {
		r.Errorf("got %v, want ErrNoReply", err)
	}
}
