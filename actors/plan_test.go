package actors

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/moerack/moerack/topology"
)

func TestMakePlan(t *testing.T) {
	former := func(action Action, members ...int) *Plan {
		return &Plan{Group: "ep", Term: 2, Epoch: 3, Wave: 4, Step: 5, Action: action, Members: members}
	}
	vote := func(engine, rows int) Vote { return Vote{Epoch: 3, Step: 6, Engine: engine, Rows: rows} }
	drains := func(v Vote) Vote { v.Drain = true; return v }
	for _, tt := range []struct {
		name   string
		former *Plan
		votes  []Vote
		tp     int
		wave   uint64
		action Action
		rows   []int
		drain  []bool
		pad    int
	}{
		{"one engine", former(Run, 0), []Vote{vote(0, 7)}, 1, 4, Run, []int{7}, []bool{false}, 7},
		{"any order, padded to TP", former(Run, 0, 1), []Vote{vote(1, 5), vote(0, 2)}, 4, 4, Run, []int{2, 5}, []bool{false, false}, 8},
		{"members without engine 0", former(Run, 2, 5), []Vote{vote(2, 1), vote(5, 3)}, 1, 4, Run, []int{1, 3}, []bool{false, false}, 3},
		{"one engine without rows runs along", former(Run, 0, 1), []Vote{vote(0, 0), vote(1, 1)}, 1, 4, Run, []int{0, 1}, []bool{false, false}, 1},
		{"no rows", former(Run, 0, 1), []Vote{vote(0, 0), vote(1, 0)}, 2, 4, Park, []int{0, 0}, []bool{false, false}, 2},
		{"no rows, but a request that waits", former(Run, 0, 1), []Vote{vote(0, 0), {Epoch: 3, Step: 6, Engine: 1, Queue: 1}}, 1, 4, Run, []int{0, 0}, []bool{false, false}, 1},
		{"a park ends the wave", former(Park, 0), []Vote{vote(0, 1)}, 1, 5, Run, []int{1}, []bool{false}, 1},
		{"two parks are two waves", former(Park, 0), []Vote{vote(0, 0)}, 1, 5, Park, []int{0}, []bool{false}, 1},
		{"wishes are in the plan", former(Run, 0, 1), []Vote{drains(vote(1, 0)), vote(0, 1)}, 1, 4, Run, []int{1, 0}, []bool{false, true}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := &Plan{
				Group: "ep", Term: 2, Epoch: 3, Wave: tt.wave, Step: 6, Action: tt.action, Members: tt.former.Members, Rows: tt.rows,
				Drain: tt.drain, PadTo: tt.pad, Exchange: topology.AllGather, Stages: 1,
			}
			want.Hash = want.Sum()
			got, err := MakePlan(tt.former, tt.votes, tt.tp, topology.AllGather)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("plan %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestBeginningComesBeforeTheFirstPlan(t *testing.T) {
	b := Beginning("dp0", 1, 1, 1, 1, []int{0})
	p, err := MakePlan(b, []Vote{{Epoch: 1, Step: 1, Rows: 2}}, 1, topology.Local)
	if err != nil || p.Step != 1 || p.Wave != 1 || p.Action != Run || p.Group != "dp0" {
		t.Errorf("first plan %+v, %v; want step 1 of wave 1, run", p, err)
	}
}

func TestMakePlanRefuses(t *testing.T) {
	good := Vote{Epoch: 1, Step: 1, Rows: 1}
	with := func(change func(*Vote)) Vote {
		v := good
		v.Engine = 1
		change(&v)
		return v
	}
	for _, tt := range []struct {
		name    string
		votes   []Vote
		members []int
		want    string
	}{
		{"a vote is missing", []Vote{good}, []int{0, 1}, "1 votes for 2 engines"},
		{"no engine", nil, nil, "0 votes for 0 engines"},
		{"two votes of one", []Vote{good, good}, []int{0, 1}, "two votes of engine 0"},
		{"unknown engine", []Vote{good, with(func(v *Vote) { v.Engine = 2 })}, []int{0, 1}, "vote of engine 2, members are [0 1]"},
		{"negative engine", []Vote{with(func(v *Vote) { v.Engine = -1 })}, []int{0}, "vote of engine -1"},
		{"another epoch", []Vote{good, with(func(v *Vote) { v.Epoch = 2 })}, []int{0, 1}, "engine 1 votes for step 1 of epoch 2"},
		{"another step", []Vote{good, with(func(v *Vote) { v.Step = 2 })}, []int{0, 1}, "engine 1 votes for step 2 of epoch 1"},
		{"negative rows", []Vote{good, with(func(v *Vote) { v.Rows = -1 })}, []int{0, 1}, "-1 rows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := Beginning("ep", 1, 1, 1, 1, tt.members)
			if p, err := MakePlan(b, tt.votes, 1, topology.Local); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("plan %+v, error %v; want one that names %q", p, err, tt.want)
			}
		})
	}
}

// TestMakePlanIgnoresOrder: the same votes in any order give the same plan.
func TestMakePlanIgnoresOrder(t *testing.T) {
	const seed = 8
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		votes := make([]Vote, 1+r.IntN(8))
		var members []int
		for i := range votes {
			votes[i] = Vote{Epoch: 1, Step: 1, Engine: 2 * i, Rows: r.IntN(4), Drain: r.IntN(2) == 0}
			members = append(members, 2*i)
		}
		former := Beginning("ep", 1, 1, 1, 1, members)
		a, err := MakePlan(former, votes, 2, topology.AllGather)
		r.Shuffle(len(votes), func(i, j int) { votes[i], votes[j] = votes[j], votes[i] })
		b, err2 := MakePlan(former, votes, 2, topology.AllGather)
		if err != nil || err2 != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v, %v and %+v, %v", a, err, b, err2)
		}
	}
}

// TestHashSeesEveryFieldButTheTerm: plans that differ in anything but the term have different hashes.
func TestHashSeesEveryFieldButTheTerm(t *testing.T) {
	base := Plan{
		Group: "ep", Term: 1, Epoch: 1, Wave: 1, Step: 1, Action: Run, Members: []int{0, 1}, Rows: []int{1, 2}, Drain: []bool{false, true},
		PadTo: 2, Exchange: topology.AllGather, Stages: 1,
	}
	for name, change := range map[string]func(*Plan){
		"group": func(p *Plan) { p.Group = "dp0" }, "epoch": func(p *Plan) { p.Epoch++ }, "wave": func(p *Plan) { p.Wave++ },
		"step": func(p *Plan) { p.Step++ }, "action": func(p *Plan) { p.Action = Park }, "members": func(p *Plan) { p.Members = []int{0, 2} },
		"rows": func(p *Plan) { p.Rows = []int{2, 1} }, "drain": func(p *Plan) { p.Drain = []bool{true, false} },
		"pad": func(p *Plan) { p.PadTo = 4 }, "exchange": func(p *Plan) { p.Exchange = topology.Local }, "stages": func(p *Plan) { p.Stages = 2 },
	} {
		p := base
		if change(&p); p.Sum() == base.Sum() {
			t.Errorf("%s changes nothing", name)
		}
	}
	p := base
	if p.Term++; p.Sum() != base.Sum() {
		t.Error("the term is in the hash")
	}
	fields := reflect.TypeFor[Plan]().NumField()
	if fields != 13 {
		t.Errorf("Plan has %d fields: Sum and this test know 13", fields)
	}
}
