package expertgroup

import (
	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/subject"
	v1 "github.com/moerack/moerack/messages/v1"
)

// listen makes the actor receive what other nodes tell of their ranks. The handler only decodes.
func (g *group) listen(root *actor.RootContext, self *actor.PID) error {
	for _, o := range g.core.circles {
		if !o.abroad() {
			continue
		}
		var err error
		g.source, err = g.Bus.Subscribe(g.Space.Endpoints(g.Group.Name), func(m bus.Message) {
			e := &v1.Endpoints{}
			if err := v1.Decode(m.Data, e); err != nil {
				g.Logger.Warn("message not understood", "actor", "expertgroup", "subject", m.Subject, "error", err)
				return
			}
			root.Send(self, e)
		})
		return err
	}
	return nil
}

// publish sends a message. One that did not go out is no different from one that was lost: it is repeated.
func (g *group) publish(subject string, m proto.Message) {
	data, err := proto.Marshal(m)
	if err == nil {
		err = g.Bus.Publish(subject, data)
	}
	if err != nil {
		g.Logger.Warn("message not published", "actor", "expertgroup", "group", g.Group.Name, "subject", subject, "error", err)
	}
}

func (g *group) encodeEndpoints(o *circle) *v1.Endpoints {
	m := &v1.Endpoints{Group: g.Group.Name, Kind: o.kind, Epoch: g.Epoch, Node: g.Node, Complete: o.missing == 0}
	for _, r := range o.own() {
		m.Endpoints = append(m.Endpoints, &v1.Endpoint{Rank: uint32(r), Data: *o.have[r]})
	}
	return m
}

// decodeEndpoints returns the endpoints by rank in the communicator.
func decodeEndpoints(m *v1.Endpoints) map[int][]byte {
	out := make(map[int][]byte, len(m.Endpoints))
	for _, e := range m.Endpoints {
		out[int(e.GetRank())] = e.GetData()
	}
	return out
}

// onReport tells the coordinator how the ranks' joining ended.
func (g *group) onReport(e report) {
	m := &v1.Ready{Group: g.Group.Name, Epoch: g.Epoch, Node: g.Node}
	for _, r := range g.core.ranks {
		m.Ranks = append(m.Ranks, uint32(r))
	}
	if f := e.failure; f != nil {
		m.Failure = &v1.Failure{Rank: uint32(f.Rank), Node: f.Node, Step: f.Step, Op: f.Op, Layer: int32(f.Layer), Text: f.Err.Error()}
	} else if g.core.repeat.Copies() == 0 {
		g.Logger.Info("ranks have joined their group", "group", g.Group.Name, "epoch", g.Epoch, "ranks", g.core.ranks)
	}
	g.publish(g.Space.Coordinator(subject.Ready), m)
}
