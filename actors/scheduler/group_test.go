package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// planOf makes the plan of a vote in a group where another engine has rows too.
func planOf(v *actors.Vote, others int) *actors.Plan {
	return &actors.Plan{
		Group: "ep", Epoch: 1, Wave: 1, Step: v.Step, Action: actors.Run, Members: []int{0, engineNo}, Rows: []int{others, v.Rows}, Drain: []bool{false, v.Drain},
		PadTo: max(others, v.Rows), Exchange: topology.AllGather, Stages: 1,
	}
}

// TestVotesAhead: a step is handed to all ranks of the engine as soon as it is planned, and the step after it is voted for as soon as
// the step before it is behind; a step is behind when all ranks have answered, in whatever order.
func TestVotesAhead(t *testing.T) {
	g := newRig(t, layout{text: letters, ranks: 2, group: 4, byHand: true})
	g.send(&actors.Planned{Plan: planOf(g.vote(1, 0), 5)}) // a dummy step
	second := g.vote(2, 0)
	dummy := <-g.steps
	if peer := <-g.peers[1]; peer.Plan != dummy.Plan || peer.Batch != dummy.Batch || len(dummy.Batch.Rows) != 0 {
		t.Errorf("ranks got %+v and %+v", dummy, peer)
	}
	g.submit(1, actors.Request{MaxTokens: 2})
	g.send(&actors.Planned{Plan: planOf(second, 1)})
	again := <-g.steps
	traffic := nn.Traffic{A2E: 10, E2A: 20, TP: 1}
	peer := func(s *actors.Step) *actors.StepDone {
		return &actors.StepDone{Rank: 9, Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation, Sent: traffic}
	}
	g.send(peer(dummy))
	g.send(peer(dummy)) // does not count for the other
	g.send(peer(again)) // before the first rank's part of the step before
	g.answer(dummy)
	third := g.vote(3, 2)
	g.send(&actors.Planned{Plan: planOf(third, 1)})
	g.answer(again)
	fourth := g.vote(4, 1)
	g.send(&actors.Planned{Plan: planOf(fourth, 1)})
	g.send(&actors.Planned{Plan: planOf(fourth, 1)}) // an old copy
	prompt, decode := <-g.steps, <-g.steps
	if r := decode.Batch.Rows[0]; r.Tokens[0] != actors.Placeholder || r.Ends[0] != 0 {
		t.Errorf("step %d: rows %+v", decode.Plan.Step, r)
	}
	g.answer(prompt, 3)
	g.answer(decode, 4)
	g.send(peer(prompt))
	g.expect(`1 [3] "c"`)
	g.vote(5, 0)
	g.send(peer(decode))
	g.expect(`1 [4] "d" length`)
	want := actors.Stats{
		Steps: 4, ExchangeSteps: actors.ExchangeSteps{AllGather: 4}, StageSteps: actors.StageSteps{One: 4},
		Bytes: actors.BytesMoved{A2E: 40, E2A: 80, TP: 4}, PromptTokens: 2, GeneratedTokens: 2,
	}
	engine := actors.EngineStats{Engine: engineNo, Steps: 4, RealTokens: 3, DummySteps: 2, PaddedTokens: 6, KVBlocks: 16, KVBlocksFree: 16}
	got := g.stats()
	if got.Steps != want.Steps || got.ExchangeSteps != want.ExchangeSteps || got.StageSteps != want.StageSteps || got.Bytes != want.Bytes ||
		got.PromptTokens != 2 || got.GeneratedTokens != 2 || got.Engines[0] != engine {
		t.Errorf("stats %+v\nwant  %+v, engine %+v", got, want, engine)
	}
}

// TestStepsOfAGroupAreCountedOnce: engines of a group run the same steps.
func TestStepsOfAGroupAreCountedOnce(t *testing.T) {
	var s actors.Stats
	for engine, steps := range []int{3, 5} {
		l := NewLedger(engine, 4)
		for range steps {
			l.stepRun(&flight{plan: &actors.Plan{Exchange: topology.AllGather, Stages: 1, PadTo: 2}, sent: nn.Traffic{A2E: 1}}, outcome{rows: 1, prompt: 1, generated: 1})
		}
		l.AddTo(&s)
	}
	if s.Steps != 5 || s.ExchangeSteps != (actors.ExchangeSteps{AllGather: 5}) || s.StageSteps.One != 5 || s.Bytes.A2E != 8 || s.PromptTokens != 8 || s.GeneratedTokens != 8 || len(s.Engines) != 2 {
		t.Errorf("stats %+v", s)
	}
}

// TestFailureInAGroup: it is the group's: the agent hears who failed where, the requests stay until the verdict, nothing more is voted
// for, and they end with what the verdict says.
func TestFailureInAGroup(t *testing.T) {
	in := &actors.Failure{Rank: 9, Node: "n", Step: 1, Op: "attention", Layer: 3, Err: errors.New("odd")}
	for _, tt := range []struct {
		name  string
		reply func(s *actors.Step) any
		want  string // "" if the agent hears nothing
	}{
		{"step failed", func(s *actors.Step) any {
			return &actors.StepDone{Rank: 9, Epoch: 1, Step: 1, Incarnation: s.Incarnation, Err: in}
		}, "rank 9 on node n: step 1: layer 3: attention: odd"},
		{"rank lost", func(*actors.Step) any {
			return &actors.StepDone{Rank: 9, Err: errors.New("gone"), Lost: true}
		}, "rank 9 on node n: gone"},
		{"refused", func(s *actors.Step) any {
			return &actors.Refused{Rank: 9, Epoch: 1, Step: 1, Incarnation: s.Incarnation, Reason: "plan of another epoch"}
		}, "rank 9 on node n: step 1: refused: plan of another epoch"},
		{"busy", func(s *actors.Step) any {
			return &actors.Busy{Rank: 9, Step: 1, Incarnation: s.Incarnation}
		}, "rank 9 on node n: step 1: the rank has two steps already"},
		{"aborted", func(s *actors.Step) any {
			return &actors.StepDone{Rank: 9, Epoch: 1, Step: 1, Incarnation: s.Incarnation, Err: &hal.Error{Class: hal.Aborted}}
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, layout{ranks: 2, byHand: true})
			v := g.vote(1, 0)
			g.send(&actors.Planned{Plan: planOf(v, 1)})
			g.submit(1, actors.Request{MaxTokens: 4})
			second := g.vote(2, 0)
			step := <-g.steps
			g.send(tt.reply(step))
			if tt.want != "" {
				if b := hear[*actors.Broken](g); b.Epoch != 1 || b.Failure.Rank != 9 || b.Failure.Error() != tt.want {
					t.Errorf("broken: %v, want %s", b.Failure, tt.want)
				}
			}
			g.send(&actors.Planned{Plan: planOf(second, 1)}) // is not handed over any more
			g.answer(step)
			g.send(&actors.EpochEnded{Epoch: 7, Err: errors.New("another's")})
			g.send(&actors.EpochEnded{Epoch: 1, Err: errors.New("verdict")})
			g.expect(`1 [] "" error: verdict`)
			g.submit(2, actors.Request{MaxTokens: 1})
			g.expect(`2 [] "" error: verdict`)
			g.drain()
			<-g.asked
			if n := len(g.steps) + len(g.agent); n != 0 {
				t.Errorf("%d messages after the failure", n)
			}
		})
	}
}

// TestAbortedStepsAreNoErrors: what ended a step is reported where it happened, so that a node which is told to end, or whose group
// has ended, says nothing at the level of errors.
func TestAbortedStepsAreNoErrors(t *testing.T) {
	for _, group := range []int{1, 2} {
		for _, tt := range []struct {
			err  error
			logs bool
		}{
			{&hal.Error{Op: "step", Class: hal.Aborted, Detail: "the rank was told to end", Err: context.Canceled}, false},
			{errors.New("odd"), true},
		} {
			var out strings.Builder // written by the scheduler alone, read when it has answered
			g := newRig(t, layout{group: group, byHand: true, log: slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})})
			g.submit(1, actors.Request{MaxTokens: 4})
			g.send(&actors.Planned{Plan: planOf(g.vote(1, 0), 1)})
			g.send(&actors.Planned{Plan: planOf(g.vote(2, 2), 1)})
			g.answer(<-g.steps)
			second := <-g.steps
			g.send(&actors.StepDone{Rank: 8, Epoch: 1, Step: 2, Incarnation: second.Incarnation, Err: tt.err})
			g.send(&actors.EpochEnded{Epoch: 1, Err: errors.New("verdict")})
			if p := <-g.told; p.Chunk.Finish != actors.FinishError {
				t.Errorf("told %s", show(p))
			}
			if logged := out.String(); (logged != "") != tt.logs || tt.logs && !strings.Contains(logged, "engine=2") {
				t.Errorf("group of %d, %v: logged %q", group, tt.err, logged)
			}
		}
	}
}

// TestDrain: no request is taken any more, those that are there finish, and the asker hears when a plan has parked the group with the
// wish, which wakes the group if need be.
func TestDrain(t *testing.T) {
	g := newRig(t, layout{text: letters, byHand: true})
	g.send(&actors.Planned{Plan: planFor(g.vote(1, 0))})
	g.submit(1, actors.Request{MaxTokens: 1})
	hear[*actors.Wake](g)
	g.send(&actors.Called{Epoch: 1, Wave: 2, Step: 2})
	second := g.vote(2, 2)
	g.drain()
	g.submit(2, actors.Request{MaxTokens: 1})
	g.expect(`2 [] "" error: engine 2 is draining: it takes no new requests`)
	if second.Drain {
		t.Error("the wish is in a vote given before it")
	}
	g.send(&actors.Planned{Plan: planFor(second)})
	third := g.vote(3, 0)
	if !third.Drain {
		t.Error("the wish is not in the vote")
	}
	g.send(&actors.Planned{Plan: planFor(third)})
	if n := len(g.asked); n != 0 {
		t.Error("drained with a request")
	}
	g.answer(<-g.steps, 4)
	g.expect(`1 [4] "d" length`)
	if d, ok := (<-g.asked).(*actors.Drained); !ok || d.Engine != engineNo {
		t.Errorf("drained: %+v", d)
	}
	g.drain() // asked again, answered again
	<-g.asked
}

// TestDrainWakesAParkedGroup: the last plan does not show the wish.
func TestDrainWakesAParkedGroup(t *testing.T) {
	g := newRig(t, layout{byHand: true})
	g.send(&actors.Planned{Plan: planFor(g.vote(1, 0))})
	g.drain()
	if w := hear[*actors.Wake](g); w.Engine != engineNo || w.Epoch != 1 {
		t.Errorf("wake: %+v", w)
	}
	g.send(&actors.Called{Epoch: 1, Wave: 2, Step: 2})
	g.send(&actors.Planned{Plan: planFor(g.vote(2, 0))})
	<-g.asked
}

// TestEOSWastesOneStep: the row of the ended request runs as padding in the step that was voted for, and counts as padding.
func TestEOSWastesOneStep(t *testing.T) {
	g := newRig(t, layout{text: letters})
	g.submit(1, actors.Request{MaxTokens: 9})
	g.answer(<-g.steps, 5)
	g.answer(<-g.steps, 0)
	g.expect(`1 [5] "e"`, `1 [0] "" stop`)
	g.answer(<-g.steps, padding)
	g.submit(2, actors.Request{MaxTokens: 1})
	g.answer(<-g.steps, 6)
	g.expect(`2 [6] "f" length`)
	want := actors.EngineStats{Engine: engineNo, Steps: 4, RealTokens: 5, DummySteps: 1, PaddedTokens: 1, KVBlocks: 16, KVBlocksFree: 16}
	if s := g.stats(); s.Engines[0] != want {
		t.Errorf("stats %+v, want %+v", s.Engines[0], want)
	}
}
