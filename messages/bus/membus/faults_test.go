package membus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/membus"
)

// pair returns two buses of a network, closed with the test.
func pair(t *testing.T, o membus.Options) (a, b *membus.Bus) {
	t.Helper()
	n := membus.New(o)
	a, b = n.Connect(), n.Connect()
	t.Cleanup(func() {
		for _, x := range []*membus.Bus{a, b} {
			if err := x.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	return a, b
}

// send publishes n numbers from a to b and returns what arrived when nothing is under way any more.
func send(t *testing.T, a, b *membus.Bus, n int) []string {
	t.Helper()
	var got []string
	s, err := b.Subscribe("n", func(m bus.Message) { got = append(got, string(m.Data)) })
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := a.Publish("n", fmt.Appendf(nil, "%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Minute) // of fake time, far above any delay
	synctest.Wait()
	s.Unsubscribe()
	return got
}

func TestFaults(t *testing.T) {
	const n = 2000
	for _, tt := range []struct {
		name      string
		opts      membus.Options
		low, high int // messages that arrive
		doubled   bool
		sorted    bool
	}{
		{"none", membus.Options{}, n, n, false, true},
		// The bounds are more than ten standard deviations (≤ 22) away.
		{"loss", membus.Options{Loss: 0.3}, n*7/10 - 220, n*7/10 + 220, false, true},
		{"all lost", membus.Options{Loss: 1}, 0, 0, false, true},
		{"duplication", membus.Options{Duplicate: 0.3}, n*13/10 - 220, n*13/10 + 220, true, true},
		{"delay", membus.Options{Delay: time.Second}, n, n, false, false},
		{"everything", membus.Options{Loss: 0.5, Duplicate: 1, Delay: time.Second}, n - 450, n + 450, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.opts.Seed = rand.Uint64()
				t.Logf("seed %d", tt.opts.Seed)
				a, b := pair(t, tt.opts)
				got := send(t, a, b, n)
				if len(got) < tt.low || len(got) > tt.high {
					t.Errorf("%d of %d arrived, want %d … %d", len(got), n, tt.low, tt.high)
				}
				if slices.IsSorted(got) != tt.sorted {
					t.Errorf("in order: %t, want %t", !tt.sorted, tt.sorted)
				}
				slices.Sort(got)
				if unique := len(slices.Compact(slices.Clone(got))); (unique < len(got)) != tt.doubled {
					t.Errorf("%d arrived, %d different: doubled should be %t", len(got), unique, tt.doubled)
				}
				// The same seed is the same fate.
				c, d := pair(t, tt.opts)
				again := send(t, c, d, n)
				slices.Sort(again)
				if !slices.Equal(got, again) {
					t.Error("the same seed let other messages arrive")
				}
			})
		})
	}
}

func TestDelayIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		const longest = time.Second
		a, b := pair(t, membus.Options{Seed: seed, Delay: longest})
		start := time.Now()
		var took []time.Duration
		if _, err := b.Subscribe("n", func(bus.Message) { took = append(took, time.Since(start)) }); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if err := a.Publish("n", nil); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Minute)
		synctest.Wait()
		// The chance that none of 1000 is in the first, or the last, tenth is 0.9^1000 < 1e-45.
		if len(took) != 1000 || slices.Min(took) > longest/10 || slices.Max(took) < longest*9/10 || slices.Max(took) > longest {
			t.Errorf("%d messages took %s … %s, want 1000 over 0 … %s", len(took), slices.Min(took), slices.Max(took), longest)
		}
	})
}

func TestIsolate(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pair(t, membus.Options{Delay: delay})
				var mu sync.Mutex // guards heard: each handler has a goroutine
				heard := map[string]int{}
				for name, x := range map[string]*membus.Bus{"a": a, "b": b} {
					hear := func(m bus.Message) {
						mu.Lock()
						defer mu.Unlock()
						heard[name+" "+string(m.Data)]++
					}
					if _, err := x.Subscribe("n", hear); err != nil {
						t.Fatal(err)
					}
				}
				publish := func(x *membus.Bus, text string) {
					t.Helper()
					if err := x.Publish("n", []byte(text)); err != nil {
						t.Fatal(err)
					}
				}
				settle := func() {
					<-time.After(time.Minute)
					synctest.Wait()
				}
				publish(a, "before")
				settle()
				b.Isolate()
				publish(a, "to it")
				publish(b, "from it")
				settle()
				b.Rejoin()
				settle()
				publish(a, "after")
				publish(b, "back")
				settle()
				want := map[string]int{
					"a before": 1, "b before": 1, "a to it": 1,
					"a after": 1, "b after": 1, "a back": 1, "b back": 1,
				}
				if fmt.Sprint(heard) != fmt.Sprint(want) {
					t.Errorf("heard %v, want %v", heard, want)
				}
			})
		})
	}
}

// TestIsolateLosesWhatIsUnderWay is the one case that needs a delay.
func TestIsolateLosesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, membus.Options{Delay: time.Second})
		if _, err := b.Subscribe("n", func(bus.Message) { t.Error("it arrived") }); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := a.Publish("n", nil); err != nil {
				t.Fatal(err)
			}
		}
		b.Isolate()
		b.Rejoin()
		<-time.After(time.Minute)
		synctest.Wait()
		if c := b.Counts(); c.Received != 0 {
			t.Errorf("received %d", c.Received)
		}
	})
}

// TestRequestOfAnIsolated shows that the network does not say that nobody answers: the bus cannot hear it.
func TestRequestOfAnIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, membus.Options{})
		if _, err := b.Subscribe("ask", func(m bus.Message) {
			if err := m.Respond(nil); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		for _, isolated := range []*membus.Bus{a, b} {
			isolated.Isolate()
			for _, subject := range []string{"ask", "nobody"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err := a.Request(ctx, subject, nil)
				cancel()
				want := context.DeadlineExceeded
				if isolated == b && subject == "nobody" {
					want = bus.ErrNoResponders
				}
				if !errors.Is(err, want) {
					t.Errorf("%s: got %v, want %v", subject, err, want)
				}
			}
			isolated.Rejoin()
		}
		if _, err := a.Request(t.Context(), "ask", nil); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseWithFlights closes buses while messages and answers are under way to and from them.
func TestCloseWithFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		n := membus.New(membus.Options{Seed: seed, Duplicate: 0.5, Delay: time.Second})
		a, b, c := n.Connect(), n.Connect(), n.Connect()
		got := 0
		for _, x := range []*membus.Bus{a, b, c} {
			if _, err := x.Subscribe("n", func(m bus.Message) {
				if x == c {
					got++
				}
				_ = m.Respond(nil) // fails with ErrNoReply for what was published
			}); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			if err := a.Publish("n", nil); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _, _ = b.Request(t.Context(), "n", nil) }() // ends with b
		synctest.Wait()
		for _, x := range []*membus.Bus{a, b} {
			start := time.Now()
			if err := x.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("close waited %s for what is under way", took)
			}
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if got < 100 {
			t.Errorf("%d messages arrived from a bus that was closed, want at least 100", got)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
