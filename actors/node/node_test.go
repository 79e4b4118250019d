package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

// TestManyAtOnce: requests of all lengths together get what each would get alone, whatever the chunks and batches.
func TestManyAtOnce(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	n := startNode(t, fakeOptions(t, nil))
	var prompts [][]int32
	var streams []*gateway.Stream
	var lengths []int
	fed, generated := 0, 0
	for range 40 {
		prompt := make([]int32, 1+r.IntN(30))
		for i := range prompt {
			prompt[i] = int32(r.IntN(vocab))
		}
		most := r.IntN(20)
		prompts, lengths = append(prompts, prompt), append(lengths, most)
		streams = append(streams, submit(t, n, actors.Request{IDs: prompt, MaxTokens: most, IgnoreEOS: true}))
		if generated += most; most > 0 {
			fed += len(prompt)
		}
	}
	for i, s := range streams {
		wantTokens(t, fmt.Sprintf("request %d", i), collect(t, s), prompts[i], lengths[i])
	}
	s := n.Stats()
	e := s.Engines[0]
	decoded := 0
	for _, m := range lengths {
		decoded += max(0, m-1)
	}
	if s.PromptTokens != int64(fed) || s.GeneratedTokens != int64(generated) || e.RealTokens != int64(fed+decoded) {
		t.Errorf("stats: %d prompt, %d generated, %d real tokens; want %d, %d, %d", s.PromptTokens, s.GeneratedTokens, e.RealTokens, fed, generated, fed+decoded)
	}
	if s.Steps == 0 || s.Steps != e.Steps || s.ExchangeSteps.Local != s.Steps || s.StageSteps.One != s.Steps || e.KVBlocksFree != 40 || e.KVBlocks != 40 ||
		e.DummySteps != 0 || e.PaddedTokens != 0 || s.Bus == nil || s.Bus.Kind != "memory" || s.Bus.Votes < s.Steps || s.Bus.Plans < s.Steps || s.Ranks[0] != (actors.RankStats{Rank: 0, WeightBytes: 1234, Threads: 1}) || s.Seconds <= 0 {
		t.Errorf("stats %+v, bus %+v", s, s.Bus)
	}
}

func TestModelLengthEndsAnAnswer(t *testing.T) {
	n := startNode(t, fakeOptions(t, nil))
	prompt := make([]int32, modelLen-3)
	wantTokens(t, "to the model length", collect(t, submit(t, n, actors.Request{IDs: prompt, MaxTokens: 1000})), prompt, 3)
	if _, err := n.Submit(t.Context(), actors.Request{IDs: make([]int32, modelLen), Sampling: greedy()}); err == nil || !strings.Contains(err.Error(), "prompt has 64 tokens, max-model-len is 64") {
		t.Errorf("a prompt of the model length: %v", err)
	}
}

func TestAbortInMidStep(t *testing.T) {
	var g *gate
	n := startNode(t, fakeOptions(t, func(m *actortest.Model, _ *Options) { g = gated(m) }))
	prompt := []int32{1, 2, 3}
	a := submit(t, n, actors.Request{IDs: prompt, MaxTokens: 50, IgnoreEOS: true})
	<-g.began
	b := submit(t, n, actors.Request{IDs: prompt, MaxTokens: 5, IgnoreEOS: true})
	a.Cancel()
	if o := collect(t, a); o.finish != actors.FinishAbort || len(o.tokens) != 0 || !slices.Equal(o.prompt, prompt) {
		t.Errorf("aborted: %+v", o)
	}
	close(g.letGo)
	wantTokens(t, "the other", collect(t, b), prompt, 5)
}

func TestForwardErrorEndsItsStep(t *testing.T) {
	n := startNode(t, fakeOptions(t, func(m *actortest.Model, _ *Options) {
		m.Before = func(_ context.Context, _ int, b *nn.Batch) error {
			if slices.Contains(b.Tokens, 59) {
				return &hal.Error{Op: "MatMul", Device: "fake:0", Class: hal.CallerFault, Detail: "bad shape"}
			}
			return nil
		}
	}))
	if o := collect(t, submit(t, n, actors.Request{IDs: []int32{59}, MaxTokens: 4})); o.finish != actors.FinishError || hal.ClassOf(o.err) != hal.CallerFault {
		t.Errorf("its request: %+v", o)
	}
	wantTokens(t, "a later one", collect(t, submit(t, n, actors.Request{IDs: []int32{1}, MaxTokens: 1})), []int32{1}, 1)
	if n.Err() != nil {
		t.Errorf("the node failed: %v", n.Err())
	}
}

func TestNotFiniteEndsOneRequest(t *testing.T) {
	n := startNode(t, fakeOptions(t, func(m *actortest.Model, _ *Options) {
		m.Bad = func(token int32) int32 {
			if token == 59 {
				return 3
			}
			return -1
		}
	}))
	bad, good := submit(t, n, actors.Request{IDs: []int32{4, 59}, MaxTokens: 4}), submit(t, n, actors.Request{IDs: []int32{4, 5}, MaxTokens: 1})
	if o := collect(t, bad); o.finish != actors.FinishError || !strings.Contains(o.err.Error(), "output of layer 3 is not finite (NaN or Inf) at position 1") || !strings.Contains(o.err.Error(), "moectl doctor --model DIR") {
		t.Errorf("bad request: %+v", o)
	}
	wantTokens(t, "its neighbour", collect(t, good), []int32{4, 5}, 1)
}

func TestLostDeviceFailsTheNode(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail func() error
		want string
	}{
		{"device lost", func() error {
			return &hal.Error{Op: "MatMul", Device: "fake:0", Class: hal.DeviceLost, Detail: "no answer"}
		}, "fake:0: MatMul: no answer"},
		{"panic", func() error { panic("slice bounds out of range") }, "panic on the device thread: slice bounds out of range"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var g *gate
			n := startNode(t, fakeOptions(t, func(m *actortest.Model, _ *Options) {
				g = gated(m)
				wait := m.Before
				m.Before = func(ctx context.Context, call int, b *nn.Batch) error {
					_ = wait(ctx, call, b)
					return tt.fail()
				}
			}))
			var streams []*gateway.Stream
			for range 6 { // more than run at once
				streams = append(streams, submit(t, n, actors.Request{IDs: []int32{1, 2, 3}, MaxTokens: 9}))
			}
			<-g.began
			close(g.letGo)
			for i, s := range streams {
				if o := collect(t, s); o.finish != actors.FinishError || !strings.Contains(o.err.Error(), tt.want) || !strings.Contains(o.err.Error(), "rank 0 on node here") {
					t.Errorf("request %d: %+v, want the error", i, o)
				}
			}
			<-n.Done()
			if err := n.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("node: %v", err)
			}
			if _, err := n.Submit(t.Context(), actors.Request{IDs: []int32{1}, Sampling: greedy()}); !errors.Is(err, n.Err()) {
				t.Errorf("a request then: %v", err)
			}
		})
	}
}

func TestSubmitRefuses(t *testing.T) {
	n := startNode(t, fakeOptions(t, nil))
	if _, err := n.Submit(t.Context(), actors.Request{Text: "a", MaxTokens: -1}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three faults at once: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Submit(ended, actors.Request{IDs: []int32{1}, Sampling: greedy()}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
