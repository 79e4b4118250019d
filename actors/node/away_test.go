package node

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/membus"
)

// TestBusAway: while the bus is away the steps wait for it, however long, and nobody is called dead for his silence; when it is back
// the answer goes on where it was.
func TestBusAway(t *testing.T) {
	for _, away := range []time.Duration{100 * time.Millisecond, time.Minute} {
		t.Run(away.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFakes(ep(2, 1))
				o := f.options(t)
				o.StallTimeout = 300 * time.Millisecond
				b, _ := o.Bus.(*membus.Bus)
				n := startNode(t, o)
				prompt := []int32{1, 2, 3}
				s := submit(t, n, actors.Request{IDs: prompt, MaxTokens: 30, IgnoreEOS: true})
				first, err := s.Recv(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				b.Isolate()
				<-time.After(away)
				b.Rejoin()
				got := collect(t, s)
				got.prompt, got.tokens = first.Prompt, append(first.Tokens, got.tokens...)
				wantTokens(t, "the answer", got, prompt, 30)
			})
		})
	}
}

// TestBusAwayTooLong: a bus that does not come back fails the node after its timeout, with what to do; one that comes back before begins
// anew.
func TestBusAwayTooLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFakes(ep(2, 1))
		o := f.options(t)
		o.StallTimeout, o.BusTimeout = 300*time.Millisecond, 20*time.Second
		b, _ := o.Bus.(*membus.Bus)
		n := startNode(t, o)
		s := submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 30, IgnoreEOS: true})
		if _, err := s.Recv(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Isolate()
		<-time.After(19 * time.Second)
		b.Rejoin()
		<-time.After(2 * busLook)
		b.Isolate()
		began := time.Now()
		s = submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 30, IgnoreEOS: true})
		<-n.Done()
		if d := time.Since(began); d < o.BusTimeout || d > o.BusTimeout+2*busLook {
			t.Errorf("failed after %s", d)
		}
		want := "node here: the bus (memory) has been away for 20s (bus-timeout): start its server again"
		wantFailure(t, "request", collect(t, s).err, want)
		wantFailure(t, "node", n.Err(), want)
	})
}

// frozen is a bus that seems to be connected but carries nothing, as long as it is on.
type frozen struct {
	bus.Bus
	on atomic.Bool
}

func (f *frozen) Publish(subject string, data []byte) error {
	if f.on.Load() {
		return nil
	}
	return f.Bus.Publish(subject, data)
}

// TestBusFrozen: a bus that carries nothing for a while, though it is connected, costs no rank its life, and the answer goes on. One that
// stays so is what the error names.
func TestBusFrozen(t *testing.T) {
	for _, stays := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			f := newFakes(ep(2, 1))
			f.models[0].Before = slow
			o := f.options(t)
			o.StallTimeout = 300 * time.Millisecond
			b := &frozen{Bus: o.Bus}
			o.Bus = b
			n := startNode(t, o)
			prompt := []int32{1, 2, 3}
			s := submit(t, n, actors.Request{IDs: prompt, MaxTokens: 30, IgnoreEOS: true})
			first, err := s.Recv(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			b.on.Store(true)
			if !stays {
				<-time.After(4 * time.Second)
				b.on.Store(false)
			}
			got := collect(t, s)
			if !stays {
				got.prompt, got.tokens = first.Prompt, append(first.Tokens, got.tokens...)
				wantTokens(t, "the answer", got, prompt, 30)
				return
			}
			// The coordinator and the node's agent, which does not hear it, give up at the same time.
			wantFailure(t, "request", got.err, "the bus ", " for 5")
			<-n.Done()
			wantFailure(t, "node", n.Err(), "the bus ", " for 5")
			if d := time.Since(began); d < 4*time.Second || d > 6*time.Second {
				t.Errorf("given up after %s", d)
			}
		})
	}
}

// TestCloseWhileBusAway: a node whose bus is away does not wait for the plans that would drain its engines, however long the stall time
// is; one whose bus comes back before that drains as ever.
func TestCloseWhileBusAway(t *testing.T) {
	for _, back := range []time.Duration{0, busLook / 2} {
		t.Run(back.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFakes(ep(2, 1))
				o := f.options(t)
				o.StallTimeout = time.Hour
				b, _ := o.Bus.(*membus.Bus)
				n := startNode(t, o)
				s := submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 30, IgnoreEOS: true})
				if _, err := s.Recv(t.Context()); err != nil {
					t.Fatal(err)
				}
				b.Isolate()
				began := time.Now()
				if back > 0 {
					time.AfterFunc(back, b.Rejoin)
				}
				closeNode(t, n)
				if got := collect(t, s); got.finish != actors.FinishAbort {
					t.Errorf("the request ends with %s: %v", got.finish, got.err)
				}
				if d, most := time.Since(began), 3*busLook; d > most {
					t.Errorf("closed after %s, want %s at most", d, most)
				}
				if err := n.Err(); err != nil {
					t.Errorf("the node has failed: %v", err)
				}
			})
		})
	}
}
