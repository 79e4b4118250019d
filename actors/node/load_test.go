package node

import (
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/topology"
)

// TestExpertLoad: every expert is on one rank of the group, and what all have served is the real rows, each at its experts in each MoE
// layer: padding and dummy steps are not in it.
func TestExpertLoad(t *testing.T) {
	o := modelOptions(t, "random/rnd-v3-yarn")
	o.Layout = ep(2, 2)
	n := startNode(t, o)
	first, second := 0, 1
	long := submit(t, n, actors.Request{IDs: []int32{5, 6, 7}, MaxTokens: 9, IgnoreEOS: true, Engine: &first, Sampling: sample.Params{TopP: 1, Logprobs: -1}})
	short := submit(t, n, actors.Request{IDs: []int32{5}, MaxTokens: 2, IgnoreEOS: true, Engine: &second, Sampling: sample.Params{TopP: 1, Logprobs: -1}})
	collect(t, long)
	collect(t, short)
	if err := n.Close(t.Context()); err != nil { // the other ranks' part of the last step
		t.Fatal(err)
	}

	rows, padded := tokensOf(n)
	if rows != 3+8+1+1 || padded == 0 {
		t.Fatalf("%d real rows, %d padded: this test needs 13 and some", rows, padded)
	}
	load := n.ExpertLoad()
	experts := topology.ExpertMap{Experts: o.Config.NumRoutedExperts, Ranks: o.Layout.EP()}
	if len(load) != experts.Experts {
		t.Fatalf("%d experts, want %d", len(load), experts.Experts)
	}
	served := int64(0)
	for i, l := range load {
		if l.Expert != i || l.Rank != experts.Rank(i) {
			t.Errorf("expert %d is said to be on rank %d, want %d", l.Expert, l.Rank, experts.Rank(i))
		}
		served += l.Rows
	}
	if want := rows * choices(o); served != want {
		t.Errorf("%d rows served, want %d", served, want)
	}
}

// tokensOf sums the rows of all engines, real and padded ones.
func tokensOf(n *Node) (rows, padded int64) {
	for _, e := range n.Stats().Engines {
		rows, padded = rows+e.RealTokens, padded+e.PaddedTokens
	}
	return rows, padded
}

// choices is how many experts a row visits in a step.
func choices(o Options) int64 {
	return int64(o.Config.NumExpertsPerTok * (o.Config.NumLayers - o.Config.FirstKDenseReplace))
}

// TestEndedRowsReachNoExpert: the row of a request that its text has ended is padding in the step that was voted for, on all ranks of the
// engine: no expert serves it. Of an aborted request that is so in every step that no rank has begun: one row is late at most.
func TestEndedRowsReachNoExpert(t *testing.T) {
	o := modelOptions(t, "tiny-v2lite")
	o.Layout = ep(2, 2)
	ask := func(engine int) actors.Request {
		return actors.Request{Text: "KING HENRY:", MaxTokens: 20, IgnoreEOS: true, Engine: &engine}
	}
	over := func(n *Node) int64 { // rows that experts served and that do not count
		t.Helper()
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, _ := tokensOf(n)
		served := int64(0)
		for _, l := range n.ExpertLoad() {
			served += l.Rows
		}
		return served - rows*choices(o)
	}

	n := startNode(t, o)
	text := collect(t, submit(t, n, ask(0))).text
	var stops []*gateway.Stream
	for i := range 6 { // one ends after the other, while others run
		r := ask(i % 2)
		r.Stop = []string{text[3*i+3 : 3*i+7]}
		stops = append(stops, submit(t, n, r))
	}
	for i, s := range stops {
		if got := collect(t, s); got.finish != actors.FinishStop || !strings.HasPrefix(text, got.text) {
			t.Errorf("request %d: %s after %q of %q", i, got.finish, got.text, text)
		}
	}
	if late := over(n); late != 0 {
		t.Errorf("stop strings: experts served %d rows that do not count", late)
	}

	n = startNode(t, o)
	const aborts = 4
	for i := range aborts {
		s := submit(t, n, ask(i%2))
		for range 2 {
			if _, err := s.Recv(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.Cancel()
		if got := collect(t, s); got.finish != actors.FinishAbort {
			t.Errorf("aborted request ends with %q", got.finish)
		}
	}
	if late := over(n); late < 0 || late > aborts*choices(o) {
		t.Errorf("aborts: experts served %d rows that do not count, want at most %d", late, aborts*choices(o))
	}
}
