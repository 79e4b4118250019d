package scheduler

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a scheduler between a client and a rank that the test plays.
type rig struct {
	t      *testing.T
	sys    *actors.System
	pid    *actor.PID
	steps  chan *actors.Step
	told   chan *actors.Progress
	rank   *actor.PID
	client *actor.PID
	ledger *Ledger
	gaveUp chan error
}

func newRig(t *testing.T, newText func() func(int32) string) *rig {
	log := slog.New(slog.DiscardHandler)
	g := &rig{t: t, sys: actors.NewSystem(log), steps: make(chan *actors.Step, 16), told: make(chan *actors.Progress, 64), gaveUp: make(chan error, 1)}
	root := g.sys.Root
	g.rank = root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if s, ok := ctx.Message().(*actors.Step); ok {
			g.steps <- s
		}
	}))
	g.client = root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actors.Progress:
			g.told <- m
		case *actors.Submit:
			ctx.Request(g.pid, m)
		}
	}))
	set := Settings{Term: 1, Epoch: 1, ModelLen: 32, MaxNumBatchedTokens: 16, MaxNumSeqs: 4, BlockSize: 4, KVBlocks: 16, EOS: []int32{0}}
	g.ledger = NewLedger(0, set.KVBlocks)
	strategy := &actors.Supervision{Budget: 1, Window: 1 << 40, Delay: 1, MaxDelay: 1, Logger: log, GiveUp: func(_ *actor.PID, err error) { g.gaveUp <- err }}
	spawned := make(chan *actor.PID, 1)
	parent := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			spawned <- ctx.Spawn(Props(Options{Settings: set, Rank: g.rank, Ledger: g.ledger, Logger: log, NewText: newText}))
		}
	}, actor.WithSupervisor(strategy)))
	g.pid = <-spawned
	t.Cleanup(func() {
		for _, pid := range []*actor.PID{parent, g.rank, g.client} {
			if err := root.StopFuture(pid).Wait(); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		strategy.Close()
		g.sys.Shutdown()
		if e := g.stats().Engines[0]; e.KVBlocksFree != e.KVBlocks {
			t.Errorf("%d of %d KV blocks are free at the end", e.KVBlocksFree, e.KVBlocks)
		}
	})
	return g
}

// letters spells token n as the nth letter of the alphabet; token 30 makes it panic.
func letters() func(int32) string {
	return func(id int32) string {
		if id == 30 {
			panic("no such letter")
		}
		return string('a' + id - 1)
	}
}

func (g *rig) stats() (s actors.Stats) {
	g.ledger.AddTo(&s)
	return s
}

func (g *rig) submit(id actors.RequestID, r actors.Request) {
	g.sys.Root.Send(g.client, &actors.Submit{ID: id, Prompt: []int32{1, 2}, Request: &r})
}

// answer gives the step that the rank got its tokens, one for each row that samples.
func (g *rig) answer(s *actors.Step, tokens ...int32) {
	done := &actors.StepDone{Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation}
	for _, r := range s.Batch.Rows {
		if r.Sample {
			done.Sampled = append(done.Sampled, actors.Sampled{Request: r.Request, Token: tokens[0]})
			tokens = tokens[1:]
		}
	}
	g.sys.Root.Send(g.pid, done)
}

// show writes a chunk on one line.
func show(p *actors.Progress) string {
	s := fmt.Sprintf("%d %v %q %s", p.ID, p.Chunk.Tokens, p.Chunk.Text, p.Chunk.Finish)
	if p.Chunk.Err != nil {
		s += ": " + p.Chunk.Err.Error()
	}
	return strings.TrimSpace(s)
}

func (g *rig) expect(want ...string) {
	g.t.Helper()
	for _, w := range want {
		if got := show(<-g.told); got != w {
			g.t.Errorf("chunk %s\nwant  %s", got, w)
		}
	}
}

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
			g := newRig(t, letters)
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
	g := newRig(t, nil)
	g.submit(1, actors.Request{})
	g.expect(`1 [] "" length`)
	if s := g.stats(); s.Steps != 0 || s.PromptTokens != 0 {
		t.Errorf("stats %+v, want nothing run", s)
	}
}

func TestAbortInMidStep(t *testing.T) {
	g := newRig(t, letters)
	g.submit(1, actors.Request{MaxTokens: 4, Stop: []string{"ax"}})
	g.answer(<-g.steps, 1)
	g.expect(`1 [1] ""`)
	step := <-g.steps
	g.submit(2, actors.Request{MaxTokens: 1})
	g.sys.Root.Send(g.pid, &actors.Abort{ID: 1})
	g.sys.Root.Send(g.pid, &actors.Abort{ID: 1})
	g.sys.Root.Send(g.pid, &actors.Abort{ID: 77})
	g.expect(`1 [] "a" abort`)
	g.answer(step, 3)
	g.answer(<-g.steps, 2)
	g.expect(`2 [2] "b" length`)
}

func TestErrorsEndTheirRequests(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply func(s *actors.Step) any
		want  string // for the request in the step
		next  string // for the one that waits, "" if it goes on
	}{
		{"step failed", func(s *actors.Step) any {
			return &actors.StepDone{Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation, Err: errors.New("odd")}
		}, "odd", ""},
		{"refused", func(s *actors.Step) any {
			return &actors.Refused{Epoch: 2, Step: s.Plan.Step, Incarnation: s.Incarnation, Reason: "plan of epoch 1"}
		}, "step 0 refused in epoch 2: plan of epoch 1", ""},
		{"busy", func(s *actors.Step) any { return &actors.Busy{Step: s.Plan.Step, Incarnation: s.Incarnation} }, "step 0: the rank still runs what it was given before the scheduler restarted", ""},
		{"no tokens", func(s *actors.Step) any {
			return &actors.StepDone{Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation}
		}, "step 0: 0 tokens for 1 requests, or for others: rank and scheduler disagree on the batch", ""},
		{"rank lost", func(s *actors.Step) any {
			return &actors.StepDone{Step: s.Plan.Step, Err: errors.New("rank 0 on node n: gone"), Lost: true}
		}, "rank 0 on node n: gone", "rank 0 on node n: gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, letters)
			g.submit(1, actors.Request{MaxTokens: 4})
			step := <-g.steps
			g.submit(2, actors.Request{MaxTokens: 1})
			g.sys.Root.Send(g.pid, &actors.StepDone{Epoch: 1, Step: step.Plan.Step, Incarnation: step.Incarnation + 1}) // not ours
			g.sys.Root.Send(g.pid, &actors.StepDone{Epoch: 2, Step: step.Plan.Step, Incarnation: step.Incarnation})     // nor this
			g.sys.Root.Send(g.pid, tt.reply(step))
			got := map[actors.RequestID]string{}
			p := <-g.told
			got[p.ID] = show(p)
			if tt.next == "" {
				g.answer(<-g.steps, 2)
			}
			p = <-g.told
			got[p.ID] = show(p)
			second := `2 [2] "b" length`
			if tt.next != "" {
				second = `2 [] "" error: ` + tt.next
			}
			if got[1] != `1 [] "" error: `+tt.want || got[2] != second {
				t.Errorf("told %v, want error %q, then %q", got, tt.want, second)
			}
			if tt.next != "" {
				g.submit(3, actors.Request{MaxTokens: 1})
				g.expect(`3 [] "" error: ` + tt.next)
			}
		})
	}
}

// TestRestart: a panic ends the requests with an error, the next incarnation serves new ones, drops what the rank has to say
// to the former, and numbers its steps on.
func TestRestart(t *testing.T) {
	g := newRig(t, letters)
	g.submit(1, actors.Request{MaxTokens: 9})
	g.submit(2, actors.Request{MaxTokens: 9})
	g.answer(<-g.steps, 1)
	g.expect(`1 [1] "a"`)
	step := <-g.steps // request 2's prompt, and a row of request 1
	g.answer(step, 30, 30)
	for range 2 {
		if p := <-g.told; p.Chunk.Finish != actors.FinishError || !strings.Contains(p.Chunk.Err.Error(), "engine 0: the scheduler failed and restarts") {
			t.Errorf("told %s", show(p))
		}
	}
	g.submit(3, actors.Request{MaxTokens: 1})
	next := <-g.steps
	if next.Incarnation == step.Incarnation || next.Plan.Step <= step.Plan.Step {
		t.Errorf("after the restart: step %d of incarnation %d, before: %d of %d", next.Plan.Step, next.Incarnation, step.Plan.Step, step.Incarnation)
	}
	g.answer(step, 5, 5)
	g.answer(next, 3)
	g.expect(`3 [3] "c" length`)

	g.submit(4, actors.Request{MaxTokens: 1})
	g.answer(<-g.steps, 30) // the budget is used up
	if p := <-g.told; p.ID != 4 || p.Chunk.Finish != actors.FinishError {
		t.Errorf("told %s", show(p))
	}
	if err := <-g.gaveUp; !strings.Contains(err.Error(), "*actors.StepDone: no such letter") {
		t.Errorf("given up: %v", err)
	}
}

// TestPanicAtSubmit: the request at whose arrival the scheduler panics is answered too.
func TestPanicAtSubmit(t *testing.T) {
	g := newRig(t, func() func(int32) string { panic("no decoder") })
	g.submit(5, actors.Request{MaxTokens: 1})
	g.expect(`5 [] "" error: engine 0: the scheduler failed and restarts`)
}

func TestLogprobsComeAlong(t *testing.T) {
	g := newRig(t, nil)
	g.submit(1, actors.Request{MaxTokens: 1})
	s := <-g.steps
	lp := &sample.Logprobs{Logprob: sample.Logprob{Token: 4, Logprob: -1.5}, Top: []sample.Logprob{{Token: 7, Logprob: -0.5}}}
	g.sys.Root.Send(g.pid, &actors.StepDone{Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation, Sampled: []actors.Sampled{{Request: 1, Token: 4, Logprobs: lp}}})
	p := <-g.told
	if got := p.Chunk.Logprobs; len(got) != 1 || got[0].Token != 4 || got[0].Top[0].Token != 7 {
		t.Errorf("log-probabilities %+v", got)
	}
	if p.Chunk.Text != "" {
		t.Errorf("text %q without a tokenizer", p.Chunk.Text)
	}
}
