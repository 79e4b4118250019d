package coordinator

import (
	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/subject"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

// subscribe makes the actor receive what nodes send. Handlers only decode.
func (c *coordinator) subscribe(root *actor.RootContext, self *actor.PID) error {
	take := func(subject string, fresh func() v1.Message, give func(v1.Message, bus.Message)) error {
		s, err := c.Bus.Subscribe(subject, func(m bus.Message) {
			decoded := fresh()
			if err := v1.Decode(m.Data, decoded); err != nil {
				c.Logger.Warn("message not understood", "actor", "coordinator", "subject", m.Subject, "error", err)
				if subject == c.Space.Register() { // who waits for an answer hears why there is none
					c.answer(m, &v1.Registered{Refusal: err.Error()})
				}
				return
			}
			give(decoded, m)
		})
		if err == nil {
			c.sources = append(c.sources, s)
		}
		return err
	}
	err := take(c.Space.Register(), func() v1.Message { return &v1.Register{} }, func(m v1.Message, from bus.Message) {
		root.Send(self, &asked{register: m.(*v1.Register), message: from})
	})
	for kind, fresh := range map[subject.Kind]func() v1.Message{
		subject.Ready:    func() v1.Message { return &v1.Ready{} },
		subject.Votes:    func() v1.Message { return &v1.Votes{} },
		subject.Wake:     func() v1.Message { return &v1.Wake{} },
		subject.Progress: func() v1.Message { return &v1.Progress{} },
		subject.Done:     func() v1.Message { return &v1.Done{} },
	} {
		if err == nil {
			err = take(c.Space.Coordinator(kind), fresh, func(m v1.Message, _ bus.Message) { root.Send(self, m) })
		}
	}
	return err
}

// answer answers a registration. It may be called by any goroutine.
func (c *coordinator) answer(m bus.Message, a *v1.Registered) {
	data, err := proto.Marshal(a)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		c.Logger.Warn("registration not answered", "error", err)
	}
}

var (
	wireActions   = map[actors.Action]v1.Action{actors.Run: v1.Action_ACTION_RUN, actors.Park: v1.Action_ACTION_PARK}
	wireExchanges = map[topology.Exchange]v1.Exchange{topology.Local: v1.Exchange_EXCHANGE_LOCAL, topology.AllGather: v1.Exchange_EXCHANGE_ALLGATHER}
)

func encodePlan(p *actors.Plan) *v1.Plan {
	return &v1.Plan{
		Group: p.Group, Term: p.Term, Epoch: p.Epoch, Wave: p.Wave, Step: p.Step, Action: wireActions[p.Action], Members: numbers(p.Members),
		Rows: numbers(p.Rows), Drain: p.Drain, PadTo: uint32(p.PadTo), Exchange: wireExchanges[p.Exchange], Stages: uint32(p.Stages), Hash: p.Hash,
	}
}
