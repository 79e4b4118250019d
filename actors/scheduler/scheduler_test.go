package scheduler

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/sample"
)

func TestTextAndStops(t *testing.T) {
	for _, tt := range []struct {
		name   string
		r      actors.Request
		tokens []int32
		want   []string
	}{
		{"length", actors.Request{MaxTokens: 2}, []int32{1, 2}, []string{`1 [1] "a"`, `1 [2] "b" length`}},
		{"the EOS token has no text", actors.Request{MaxTokens: 3}, []int32{1, 0}, []string{`1 [1] "a"`, `1 [0] "" stop`}},
		{"a stop string over two tokens", actors.Request{MaxTokens: 9, Stop: []string{"bc"}}, []int32{1, 2, 3}, []string{`1 [1] "a"`, `1 [2] ""`, `1 [3] "" stop`}},
		{"held back, then released", actors.Request{MaxTokens: 9, Stop: []string{"bc"}}, []int32{2, 1, 0}, []string{`1 [2] ""`, `1 [1] "ba"`, `1 [0] "" stop`}},
		{"held back at the end", actors.Request{MaxTokens: 2, Stop: []string{"bc"}}, []int32{1, 2}, []string{`1 [1] "a"`, `1 [2] "b" length`}},
		{"held back before EOS", actors.Request{MaxTokens: 5, Stop: []string{"bc"}}, []int32{2, 0}, []string{`1 [2] ""`, `1 [0] "b" stop`}},
		{"a stop string with the last token", actors.Request{MaxTokens: 1, Stop: []string{"a"}}, []int32{1}, []string{`1 [1] "" stop`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, layout{text: letters})
			g.submit(1, tt.r)
			for i, token := range tt.tokens {
				g.answer(<-g.steps, token)
				g.expect(tt.want[i])
			}
			if s := g.stats(); s.GeneratedTokens != int64(len(tt.tokens)) || s.PromptTokens != 2 || s.Steps != int64(len(tt.tokens)) ||
				s.ExchangeSteps.Local != s.Steps || s.StageSteps.One != s.Steps || s.Engines[0].RealTokens != int64(1+len(tt.tokens)) {
				t.Errorf("stats %+v after %d tokens", s, len(tt.tokens))
			}
		})
	}
}

func TestNothingToGenerate(t *testing.T) {
	g := newRig(t, layout{})
	g.submit(1, actors.Request{})
	g.expect(`1 [] "" length`)
	if s := g.stats(); s.Steps != 0 || s.PromptTokens != 0 {
		t.Errorf("stats %+v, want nothing run", s)
	}
}

// TestAbortInMidStep: the step runs on for nothing, the one voted for as padding; what comes then serves the next request.
func TestAbortInMidStep(t *testing.T) {
	g := newRig(t, layout{text: letters})
	g.submit(1, actors.Request{MaxTokens: 5, Stop: []string{"ax"}})
	g.answer(<-g.steps, 1)
	g.expect(`1 [1] ""`)
	second := <-g.steps
	second.Batch.Begin()
	g.submit(2, actors.Request{MaxTokens: 1})
	for _, id := range []actors.RequestID{1, 1, 77} {
		g.send(&actors.Abort{ID: id})
	}
	g.expect(`1 [] "a" abort`)
	g.answer(second, 3)
	third := <-g.steps
	if masked := third.Batch.Begin(); !slices.Equal(masked, []bool{true}) {
		t.Errorf("step %d masks %v", third.Plan.Step, masked)
	}
	g.answer(third, padding)
	g.answer(<-g.steps, 2)
	g.expect(`2 [2] "b" length`)
	want := actors.EngineStats{Engine: engineNo, Steps: 4, RealTokens: 4, DummySteps: 2, PaddedTokens: 2, KVBlocks: 16, KVBlocksFree: 16}
	if s := g.stats(); s.Engines[0] != want || s.GeneratedTokens != 2 || s.PromptTokens != 4 {
		t.Errorf("stats %+v\nwant engine %+v", s, want)
	}
}

// TestErrorsEndTheirRequests: of an engine whose rank meets no other.
func TestErrorsEndTheirRequests(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply func(s *actors.Step) any
		want  string // for the request in the step
		next  string // for the one that waits, "" if it goes on
	}{
		{"step failed", func(s *actors.Step) any {
			return &actors.StepDone{Rank: 8, Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation, Err: errors.New("odd")}
		}, "rank 8 on node n: step 1: odd", ""},
		{"refused", func(s *actors.Step) any {
			return &actors.Refused{Rank: 8, Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation, Reason: "the rank is loading"}
		}, "rank 8 on node n: step 1: refused: the rank is loading", ""},
		{"busy", func(s *actors.Step) any {
			return &actors.Busy{Rank: 8, Step: s.Plan.Step, Incarnation: s.Incarnation}
		}, "rank 8 on node n: step 1: the rank has two steps already", ""},
		{"no tokens", func(s *actors.Step) any {
			return &actors.StepDone{Rank: 8, Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation}
		}, "rank 8 on node n: step 1: 0 tokens for 1 requests, or for others: rank and scheduler disagree on the batch", ""},
		{"rank lost", func(s *actors.Step) any {
			return &actors.StepDone{Rank: 8, Step: s.Plan.Step, Err: errors.New("rank 8 on node n: gone"), Lost: true}
		}, "rank 8 on node n: gone", "rank 8 on node n: gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, layout{text: letters})
			g.submit(1, actors.Request{MaxTokens: 4})
			first, second := <-g.steps, <-g.steps
			g.submit(2, actors.Request{MaxTokens: 1})
			for _, other := range []actors.StepDone{
				{Rank: 8, Epoch: 1, Incarnation: first.Incarnation + 1}, {Rank: 8, Epoch: 2, Incarnation: first.Incarnation}, {Rank: 9, Epoch: 1, Incarnation: first.Incarnation},
			} {
				other.Step = first.Plan.Step
				g.send(&other) // not what is waited for
			}
			g.send(tt.reply(first))
			if tt.next == "" {
				g.expect(`1 [] "" error: ` + tt.want)
			} else {
				ended := []string{show(<-g.told), show(<-g.told)}
				slices.Sort(ended)
				if want := []string{`1 [] "" error: ` + tt.want, `2 [] "" error: ` + tt.next}; !slices.Equal(ended, want) {
					t.Errorf("told %q, want %q", ended, want)
				}
				g.submit(3, actors.Request{MaxTokens: 1})
				g.expect(`3 [] "" error: ` + tt.next)
				return
			}
			g.answer(second, padding)
			g.answer(<-g.steps, 2)
			g.expect(`2 [2] "b" length`)
		})
	}
}

// TestRestart: a panic ends the requests with an error. The next incarnation stands where the former stood: the step in flight is
// waited for, the step that was voted for runs without rows, no vote is given twice, and what was begun for the former is padding.
func TestRestart(t *testing.T) {
	g := newRig(t, layout{text: letters, byHand: true})
	g.submit(1, actors.Request{MaxTokens: 9})
	v := g.vote(1, 0)
	g.send(&actors.Planned{Plan: planFor(v)})
	hear[*actors.Wake](g)
	g.send(&actors.Called{Epoch: 1, Wave: 2, Step: 2})
	g.send(&actors.Planned{Plan: planFor(g.vote(2, 2))})
	g.send(&actors.Planned{Plan: planFor(g.vote(3, 1))})
	second, third := <-g.steps, <-g.steps
	g.answer(second, 1)
	g.expect(`1 [1] "a"`)
	fourth := g.vote(4, 1)
	g.answer(third, 30)
	if p := <-g.told; p.ID != 1 || !strings.Contains(show(p), "engine 2: the scheduler failed and restarts") {
		t.Errorf("told %s", show(p))
	}
	g.submit(3, actors.Request{MaxTokens: 1})
	g.send(&actors.Planned{Plan: planFor(fourth)})
	empty := <-g.steps
	if empty.Plan.Step != 4 || len(empty.Batch.Rows) != 0 || empty.Incarnation == second.Incarnation {
		t.Errorf("after the restart: step %d, rows %+v, incarnation %d", empty.Plan.Step, empty.Batch.Rows, empty.Incarnation)
	}
	g.answer(empty)
	g.send(&actors.Planned{Plan: planFor(g.vote(5, 2))})
	g.vote(6, 0)
	g.answer(<-g.steps, 3)
	g.expect(`3 [3] "c" length`)
	want := actors.EngineStats{Engine: engineNo, Steps: 4, RealTokens: 5, DummySteps: 1, PaddedTokens: 1, KVBlocks: 16, KVBlocksFree: 16}
	if s := g.stats(); s.Engines[0] != want {
		t.Errorf("stats %+v, want %+v", s.Engines[0], want)
	}
}

// TestRestartWithAStepInFlight: what the former incarnation's step gives is dropped, and the next ones follow it.
func TestRestartWithAStepInFlight(t *testing.T) {
	g := newRig(t, layout{text: letters})
	g.submit(1, actors.Request{MaxTokens: 9})
	g.answer(<-g.steps, 30)
	if p := <-g.told; p.ID != 1 || p.Chunk.Finish != actors.FinishError {
		t.Errorf("told %s", show(p))
	}
	g.submit(2, actors.Request{MaxTokens: 1})
	g.answer(<-g.steps, padding) // the former's
	for s := range g.steps {
		if len(s.Batch.Rows) > 0 {
			g.answer(s, 5)
			break
		}
		g.answer(s)
	}
	g.expect(`2 [5] "e" length`)

	g.submit(4, actors.Request{MaxTokens: 1})
	for s := range g.steps {
		if len(s.Batch.Rows) > 0 {
			g.answer(s, 30) // the budget is used up
			break
		}
		g.answer(s)
	}
	if p := <-g.told; p.ID != 4 || p.Chunk.Finish != actors.FinishError {
		t.Errorf("told %s", show(p))
	}
	if err := <-g.gaveUp; !strings.Contains(err.Error(), "*actors.StepDone: no such letter") {
		t.Errorf("given up: %v", err)
	}
}

// TestPanicAtSubmit: the request at whose arrival the scheduler panics is answered too.
func TestPanicAtSubmit(t *testing.T) {
	g := newRig(t, layout{text: func() func(int32) string { panic("no decoder") }})
	g.submit(5, actors.Request{MaxTokens: 1})
	g.expect(`5 [] "" error: engine 2: the scheduler failed and restarts`)
}

// TestPlanThatWasNotVotedFor: the broken invariant costs the requests, not the group: the step is handed over all the same.
func TestPlanThatWasNotVotedFor(t *testing.T) {
	g := newRig(t, layout{byHand: true})
	g.submit(1, actors.Request{MaxTokens: 9})
	v := g.vote(1, 0)
	p := planFor(v)
	p.Action, p.Rows = actors.Run, []int{3}
	g.send(&actors.Planned{Plan: p})
	g.expect(`1 [] "" error: engine 2: the scheduler failed and restarts`)
	if s := <-g.steps; s.Plan != p || len(s.Batch.Rows) != 0 {
		t.Errorf("step %+v", s)
	}
}

func TestLogprobsComeAlong(t *testing.T) {
	g := newRig(t, layout{})
	g.submit(1, actors.Request{MaxTokens: 1})
	s := <-g.steps
	lp := &sample.Logprobs{Logprob: sample.Logprob{Token: 4, Logprob: -1.5}, Top: []sample.Logprob{{Token: 7, Logprob: -0.5}}}
	d := done(s, 4)
	d.Sampled[0].Logprobs = lp
	g.send(d)
	p := <-g.told
	if got := p.Chunk.Logprobs; len(got) != 1 || got[0].Token != 4 || got[0].Top[0].Token != 7 {
		t.Errorf("log-probabilities %+v", got)
	}
	if p.Chunk.Text != "" {
		t.Errorf("text %q without a tokenizer", p.Chunk.Text)
	}
}
