package agent

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/messages/bus"
	v1 "github.com/moerack/moerack/messages/v1"
)

// subscribe makes the actor receive what the coordinator sends. Handlers only decode.
func (a *agent) subscribe(root *actor.RootContext, self *actor.PID) error {
	misread := func(m bus.Message, err error) {
		a.Logger.Warn("message not understood", "actor", "agent", "group", a.Group, "subject", m.Subject, "error", err)
	}
	call := func(m bus.Message) {
		var c v1.Call
		if err := v1.Decode(m.Data, &c); err != nil {
			misread(m, err)
			return
		}
		root.Send(self, &c)
	}
	plan := func(m bus.Message) {
		var p v1.Plan
		if err := v1.Decode(m.Data, &p); err != nil {
			misread(m, err)
			return
		}
		decoded, err := decodePlan(&p)
		if err != nil {
			misread(m, err)
			return
		}
		root.Send(self, decoded)
	}
	for _, s := range []struct {
		subject string
		handler bus.Handler
	}{
		{a.Space.Calls(a.Group), call},
		{a.Space.Plans(a.Group), plan},
		{a.Space.Node(a.Group, a.Node), plan},
	} {
		source, err := a.Bus.Subscribe(s.subject, s.handler)
		if err != nil {
			return err
		}
		a.sources = append(a.sources, source)
	}
	return nil
}
