package agent

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/actors"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

func wirePlan(change func(*v1.Plan)) *v1.Plan {
	m := &v1.Plan{
		Group: "ep", Term: 1, Epoch: 2, Wave: 3, Step: 4, Action: v1.Action_ACTION_RUN, Members: []uint32{0, 3}, Rows: []uint32{5, 0},
		Drain: []bool{false, true}, PadTo: 6, Exchange: v1.Exchange_EXCHANGE_ALLGATHER, Stages: 1, Hash: 7,
	}
	change(m)
	return m
}

func TestDecodePlan(t *testing.T) {
	got, err := decodePlan(wirePlan(func(*v1.Plan) {}))
	want := &actors.Plan{
		Group: "ep", Term: 1, Epoch: 2, Wave: 3, Step: 4, Action: actors.Run, Members: []int{0, 3}, Rows: []int{5, 0}, Drain: []bool{false, true},
		PadTo: 6, Exchange: topology.AllGather, Stages: 1, Hash: 7,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for want, change := range map[string]func(*v1.Plan){
		"plan of step 4: action 0 is unknown":   func(m *v1.Plan) { m.Action = 0 },
		"plan of step 4: action 3 is unknown":   func(m *v1.Plan) { m.Action = 3 },
		"plan of step 4: exchange 9 is unknown": func(m *v1.Plan) { m.Exchange = 9 },
	} {
		if p, err := decodePlan(wirePlan(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v; want %q", p, err, want)
		}
	}
}

func TestFailureCrossesTheWire(t *testing.T) {
	f := &actors.Failure{Rank: 3, Node: "b", Step: 9, Op: "a2e", Layer: -1, Err: errors.New("gone")}
	var got *actors.Failure
	if !errors.As(decodeFailure(encodeFailure(f)), &got) || got.Error() != f.Error() || got.Layer != -1 {
		t.Errorf("%v, want %v", got, f)
	}
	if err := decodeFailure(nil); err != nil {
		t.Errorf("no failure is %v", err)
	}
}

// FuzzPlan: whatever the bus brings, a node refuses it or it is the plan that its engines voted for.
func FuzzPlan(f *testing.F) {
	for _, change := range []func(*v1.Plan){
		func(*v1.Plan) {}, func(m *v1.Plan) { m.Rows = nil }, func(m *v1.Plan) { m.Members = []uint32{4000000000} }, func(m *v1.Plan) { m.Epoch, m.Step = 1, 1 },
	} {
		data, err := proto.Marshal(wirePlan(change))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m v1.Plan
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		p, err := decodePlan(&m)
		if err != nil {
			return
		}
		c := NewCore("a", "ep", []int{0}, 3e9)
		c.OnCall(0, &v1.Call{Group: "ep", Term: 1, Epoch: 1, Wave: 1, Step: 1, Members: []uint32{0}})
		c.OnVote(0, &actors.Vote{Epoch: 1, Step: 1, Engine: 0, Rows: 2})
		c.Take()
		p.Hash = p.Sum() // else nearly nothing would come further
		c.OnPlan(0, p)
		for _, effect := range c.Take() {
			e, ok := effect.(ForEngine)
			if !ok {
				continue
			}
			got := e.Message.(*actors.Planned).Plan
			if got.Step != 1 || got.Epoch != 1 || len(got.Rows) != len(got.Members) || got.Rows[0] != 2 {
				t.Errorf("accepted %+v", got)
			}
		}
	})
}
