package natsbus_test

import (
	"testing"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/natsbus"
)

// Sizes are those of a node's votes; a plan for 64 engines has about 200 bytes.
const benchBytes = 100

// two returns two buses on a server in the process.
func two(b *testing.B) (x, y *natsbus.Bus) {
	b.Helper()
	s, err := natsbus.Embed(natsbus.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	var made [2]*natsbus.Bus
	for i := range made {
		if made[i], err = s.Connect(b.Context(), natsbus.Options{}); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = made[i].Close(b.Context()) })
	}
	return made[0], made[1]
}

// BenchmarkRequestInProcess is a request and its answer.
func BenchmarkRequestInProcess(b *testing.B) {
	x, y := two(b)
	if _, err := y.Subscribe("ask", func(m bus.Message) { _ = m.Respond(m.Data) }); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, benchBytes)
	for b.Loop() {
		if _, err := x.Request(b.Context(), "ask", data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHopInProcess is one message from a publisher to a handler on another connection.
func BenchmarkHopInProcess(b *testing.B) {
	x, y := two(b)
	got := make(chan struct{}, 1)
	if _, err := y.Subscribe("n", func(bus.Message) { got <- struct{}{} }); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, benchBytes)
	for b.Loop() {
		if err := x.Publish("n", data); err != nil {
			b.Fatal(err)
		}
		<-got
	}
}
