// Package bustest is the conformance suite of buses: Run holds an implementation to the contract in package bus. It looks at
// what arrives, never at how.
package bustest

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/messages/bus"
)

// Open returns at least two buses that reach one another and lose nothing. The suite closes them; what else has to end, the
// opener registers with t.Cleanup.
type Open func(t *testing.T) []bus.Bus

// Run runs all cases, each on buses of its own.
func Run(t *testing.T, open Open) {
	t.Helper()
	RunIn(t, func(t *testing.T, f func(t *testing.T)) { f(t) }, open)
}

// RunIn is Run with every case inside around, for example synctest.Test.
func RunIn(t *testing.T, around func(t *testing.T, f func(t *testing.T)), open Open) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			around(t, func(t *testing.T) {
				before := goleak.IgnoreCurrent()
				t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the opener's
				r := &rig{T: t, buses: open(t)}
				if len(r.buses) < 2 {
					t.Fatalf("got %d buses, need two", len(r.buses))
				}
				defer r.closeAll()
				c.run(r)
			})
		})
	}
}

// patience is how long a case waits for what has to come. Nothing waits so long for what must not come.
const patience = 10 * time.Second

// rig is what a case works with.
type rig struct {
	*testing.T
	buses []bus.Bus
}

// closeAll closes every bus; those that a case has closed bear it.
func (r *rig) closeAll() {
	r.Helper()
	for _, b := range r.buses {
		r.close(b)
	}
}

func (r *rig) close(b bus.Bus) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		r.Errorf("close: %v", err)
	}
}

// listen subscribes and returns the channel that messages come on.
func (r *rig) listen(b bus.Bus, subject string) (<-chan bus.Message, bus.Subscription) {
	r.Helper()
	got := make(chan bus.Message, 10000)
	return got, r.subscribe(b, subject, func(m bus.Message) { got <- m })
}

func (r *rig) subscribe(b bus.Bus, subject string, h bus.Handler) bus.Subscription {
	r.Helper()
	s, err := b.Subscribe(subject, h)
	if err != nil {
		r.Fatalf("subscribe to %s: %v", subject, err)
	}
	return s
}

func (r *rig) publish(b bus.Bus, subject, text string) {
	r.Helper()
	if err := b.Publish(subject, []byte(text)); err != nil {
		r.Fatalf("publish on %s: %v", subject, err)
	}
}

// next waits for a value.
func next[T any](r *rig, what string, c <-chan T) T {
	r.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		r.Fatalf("%s did not come in %s", what, patience)
		panic("unreachable")
	}
}

// request asks and returns the answer.
func (r *rig) request(b bus.Bus, subject, text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := b.Request(ctx, subject, []byte(text))
	return string(answer), err
}
