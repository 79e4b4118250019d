package node

import (
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/subject"
	messagesv1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/topology"
)

// planLog keeps the plans that pass a bus.
type planLog struct {
	mu    sync.Mutex // guards plans
	plans []*messagesv1.Plan
}

// follow listens to the plans of a group. Only the first copy of each counts.
func (l *planLog) follow(t *testing.T, b bus.Bus, cluster, group string) {
	t.Helper()
	_, err := b.Subscribe(subject.Space{Cluster: cluster}.Plans(group), func(m bus.Message) {
		var p messagesv1.Plan
		if err := proto.Unmarshal(m.Data, &p); err != nil {
			t.Errorf("plan on the bus: %v", err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.plans) == 0 || l.plans[len(l.plans)-1].Step < p.Step {
			l.plans = append(l.plans, &p)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run returns the plans of steps that were run.
func (l *planLog) run() []*messagesv1.Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.plans), func(p *messagesv1.Plan) bool { return p.Action != messagesv1.Action_ACTION_RUN })
}

// TestChunksAndPadding: engine 0 is in the chunks of a long prompt while engine 1 decodes, and some answers end by a token that nobody could
// foresee. Padded tokens are what the plans say, and the rows whose request had ended after their vote; every answer is that of the
// prompt alone.
func TestChunksAndPadding(t *testing.T) {
	const model = "random/rnd-v3-yarn"
	long := make([]int32, 300)
	for i := range long {
		long[i] = int32(2 + (i*i+7*i)%317)
	}
	type ask struct {
		prompt []int32
		most   int
		engine int
	}
	// The long prompt comes last, while the others generate.
	asks := []ask{{[]int32{11, 42, 97, 205}, 40, 1}, {[]int32{9, 9}, 12, 0}, {[]int32{5}, 30, 1}, {[]int32{77, 3, 200}, 25, 1}, {long, 9, 0}}
	request := func(a ask, engine *int) actors.Request {
		return actors.Request{IDs: a.prompt, MaxTokens: a.most, Engine: engine, Sampling: sample.Params{TopP: 1, Logprobs: 2}}
	}
	alone := func(ends []int32) (out []outcome) {
		o := modelOptions(t, model)
		o.Config.EOSTokenIDs = ends
		n := startNode(t, o)
		for _, a := range asks {
			out = append(out, collect(t, submit(t, n, request(a, nil))))
		}
		return out
	}
	ends := []int32{alone(nil)[2].tokens[11]} // the third answer ends at its 12th token at the latest
	want := alone(ends)
	foreseen := func(i int) bool { return len(want[i].tokens) == asks[i].most }

	for _, l := range []topology.Layout{ep(2, 1), ep(2, 2)} {
		o := modelOptions(t, model)
		o.Layout, o.Config.EOSTokenIDs, o.MaxNumBatchedTokens, o.Cluster = l, ends, 64, "padding"
		var log planLog
		log.follow(t, o.Bus, o.Cluster, "ep")
		n := startNode(t, o)
		var streams []func() outcome
		for _, a := range asks {
			s := submit(t, n, request(a, &a.engine))
			streams = append(streams, func() outcome { return collect(t, s) })
		}
		surprises := int64(0)
		for i, get := range streams {
			got := get()
			if !foreseen(i) {
				surprises++
			}
			if l.TensorParallel == 1 {
				same(t, "beside others", got, want[i])
			} else if !slices.Equal(got.tokens, want[i].tokens) {
				t.Errorf("%+v: prompt %d: tokens %v, want %v", l, i, got.tokens, want[i].tokens)
			}
			if foreseen(i) != (got.finish == actors.FinishLength) {
				t.Errorf("%+v: prompt %d ends by %s after %d tokens", l, i, got.finish, len(got.tokens))
			}
		}
		if err := n.Close(t.Context()); err != nil { // the last step may still run
			t.Fatal(err)
		}
		s, plans := n.Stats(), log.run()
		padding, chunked := int64(0), 0
		for _, p := range plans {
			for _, rows := range p.Rows {
				padding += int64(p.PadTo - rows)
			}
			if p.Rows[0] > 1 && p.Rows[1] > 0 && p.Rows[1] <= 3 && p.PadTo > 32 {
				chunked++
			}
		}
		if int64(len(plans)) != s.Steps || chunked == 0 || surprises == 0 {
			t.Fatalf("%+v: %d plans of %d steps, %d with a chunk beside decode rows, %d unforeseen ends: the test has not seen what it is about", l, len(plans), s.Steps, chunked, surprises)
		}
		rows, padded := int64(0), int64(0)
		for _, e := range s.Engines {
			rows, padded = rows+e.RealTokens, padded+e.PaddedTokens
		}
		if padded != padding+surprises {
			t.Errorf("%+v: %d padded tokens, want %d of the plans and %d of rows whose request had ended", l, padded, padding, surprises)
		}
		fed := int64(0)
		for i, a := range asks {
			fed += int64(len(a.prompt) + len(want[i].tokens) - 1)
		}
		if rows != fed {
			t.Errorf("%+v: %d real tokens, want %d", l, rows, fed)
		}
	}
}
