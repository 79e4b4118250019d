package natsbus_test

import (
	"context"
	"fmt"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/natsbus"
)

func ExampleStart() {
	ctx := context.Background()
	b, err := natsbus.Start(ctx, natsbus.Options{}) // with a URL: a server elsewhere
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = b.Close(ctx) }()
	if _, err := b.Subscribe("greet", func(m bus.Message) { _ = m.Respond([]byte("hello " + string(m.Data))) }); err != nil {
		fmt.Println(err)
		return
	}
	answer, err := b.Request(ctx, "greet", []byte("rank"))
	fmt.Println(string(answer), err, b.Kind())
	// Output: hello rank <nil> nats-inproc
}
