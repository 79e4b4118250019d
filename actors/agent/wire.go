package agent

import (
	"errors"
	"fmt"

	"github.com/moerack/moerack/actors"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

// decodePlan returns the plan of a message, or what of it this version does not know.
func decodePlan(m *v1.Plan) (*actors.Plan, error) {
	p := &actors.Plan{
		Group: m.Group, Term: m.Term, Epoch: m.Epoch, Wave: m.Wave, Step: m.Step, Members: numbers(m.Members), Rows: numbers(m.Rows),
		Drain: m.Drain, PadTo: int(m.PadTo), Stages: int(m.Stages), Hash: m.Hash,
	}
	switch m.Action {
	case v1.Action_ACTION_RUN:
		p.Action = actors.Run
	case v1.Action_ACTION_PARK:
		p.Action = actors.Park
	default:
		return nil, fmt.Errorf("plan of step %d: action %d is unknown", m.Step, m.Action)
	}
	switch m.Exchange {
	case v1.Exchange_EXCHANGE_LOCAL:
		p.Exchange = topology.Local
	case v1.Exchange_EXCHANGE_ALLGATHER:
		p.Exchange = topology.AllGather
	default:
		return nil, fmt.Errorf("plan of step %d: exchange %d is unknown", m.Step, m.Exchange)
	}
	return p, nil
}

func numbers(in []uint32) []int {
	out := make([]int, len(in))
	for i, n := range in {
		out[i] = int(n)
	}
	return out
}

func encodeFailure(f *actors.Failure) *v1.Failure {
	m := &v1.Failure{Rank: uint32(f.Rank), Node: f.Node, Step: f.Step, Op: f.Op, Layer: int32(f.Layer), Text: "unknown"}
	if f.Err != nil {
		m.Text = f.Err.Error()
	}
	return m
}

// decodeFailure returns the failure of a message, nil if there is none. One without a node blames no rank.
func decodeFailure(m *v1.Failure) error {
	switch {
	case m == nil:
		return nil
	case m.Node == "":
		return errors.New(m.Text)
	}
	return &actors.Failure{Rank: int(m.Rank), Node: m.Node, Step: m.Step, Op: m.Op, Layer: int(m.Layer), Err: errors.New(m.Text)}
}
