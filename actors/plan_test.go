package actors

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestMakePlan(t *testing.T) {
	vote := func(engine, rows int) Vote {
		return Vote{Term: 2, Epoch: 3, Wave: 4, Step: 5, Engine: engine, Rows: rows}
	}
	for _, tt := range []struct {
		name   string
		votes  []Vote
		tp     int
		action Action
		rows   []int
		pad    int
	}{
		{"one engine", []Vote{vote(0, 7)}, 1, Run, []int{7}, 7},
		{"any order, padded to TP", []Vote{vote(1, 5), vote(0, 2)}, 4, Run, []int{2, 5}, 8},
		{"one engine without rows runs along", []Vote{vote(0, 0), vote(1, 1)}, 1, Run, []int{0, 1}, 1},
		{"no rows", []Vote{vote(0, 0), vote(1, 0)}, 1, Park, []int{0, 0}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := Plan{Term: 2, Epoch: 3, Wave: 4, Step: 5, Action: tt.action, Rows: tt.rows, PadTo: tt.pad, Exchange: ExchangeLocal, Stages: 1}
			got, err := MakePlan(tt.votes, len(tt.votes), tt.tp)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("plan %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestMakePlanRefuses(t *testing.T) {
	good := Vote{Term: 1, Epoch: 1, Engine: 0, Rows: 1}
	with := func(change func(*Vote)) Vote {
		v := good
		v.Engine = 1
		change(&v)
		return v
	}
	for _, tt := range []struct {
		name    string
		votes   []Vote
		engines int
		want    string
	}{
		{"a vote is missing", []Vote{good}, 2, "1 votes for 2 engines"},
		{"no engine", nil, 0, "0 votes for 0 engines"},
		{"two votes of one", []Vote{good, good}, 2, "two votes of engine 0"},
		{"unknown engine", []Vote{good, with(func(v *Vote) { v.Engine = 2 })}, 2, "vote of engine 2, group has 0 … 1"},
		{"negative engine", []Vote{with(func(v *Vote) { v.Engine = -1 })}, 1, "vote of engine -1"},
		{"another term", []Vote{good, with(func(v *Vote) { v.Term = 2 })}, 2, "engine 1 votes for term 2"},
		{"another epoch", []Vote{good, with(func(v *Vote) { v.Epoch = 2 })}, 2, "epoch 2"},
		{"another wave", []Vote{good, with(func(v *Vote) { v.Wave = 2 })}, 2, "wave 2"},
		{"another step", []Vote{good, with(func(v *Vote) { v.Step = 2 })}, 2, "step 2"},
		{"negative rows", []Vote{good, with(func(v *Vote) { v.Rows = -1 })}, 2, "-1 rows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if p, err := MakePlan(tt.votes, tt.engines, 1); err == nil || !strings.Contains(err.Error(), tt.want) {
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
		for i := range votes {
			votes[i] = Vote{Engine: i, Rows: r.IntN(4)}
		}
		a, err := MakePlan(votes, len(votes), 2)
		r.Shuffle(len(votes), func(i, j int) { votes[i], votes[j] = votes[j], votes[i] })
		b, err2 := MakePlan(votes, len(votes), 2)
		if err != nil || err2 != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v, %v and %+v, %v", a, err, b, err2)
		}
	}
}
