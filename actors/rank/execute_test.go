package rank

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/sample"
)

const vocab = 50

var limits = nn.Limits{Rows: 16, Samples: 4, Sequences: 4, ModelLen: 16, Blocks: 8, BlockSize: 4}

func greedy() sample.Params { return sample.Params{TopP: 1, Logprobs: sample.NoLogprobs} }

func options() Options {
	return Options{Rank: 0, Node: "n", Epoch: 1, BlockSize: limits.BlockSize, Logger: slog.New(slog.DiscardHandler)}
}

func executorOf(m Model) *executor {
	return newExecutor(options(), Opened{Model: m, Facts: actors.RankFacts{Layers: actortest.Layers}})
}

// step makes a run step of whole prompts, all sampled, request i in blocks 2i, 2i+1.
func step(number uint64, prompts ...[]int32) *actors.Step {
	b := &actors.Batch{}
	for i, p := range prompts {
		b.Rows = append(b.Rows, actors.Rows{Request: actors.RequestID(i + 1), Tokens: p, Blocks: []int32{int32(2 * i), int32(2*i + 1)}, Sample: true, Sampling: greedy()})
	}
	return &actors.Step{Plan: actors.Plan{Epoch: 1, Step: number, Action: actors.Run, PadTo: b.Tokens()}, Batch: b, Incarnation: 9}
}

func TestLower(t *testing.T) {
	b := &actors.Batch{Rows: []actors.Rows{
		{Tokens: []int32{5, 6}, Position: 3, Blocks: []int32{7, 2}},
		{Tokens: []int32{9}, Position: 0, Blocks: []int32{1}, Sample: true},
	}}
	want := nn.Batch{
		Tokens: []int32{5, 6, 9, 0}, Positions: []int32{3, 4, 0, 0}, Slots: []int32{31, 8, 4, nn.Padding}, Seqs: []int32{0, 0, 1, nn.Padding},
		Tables: []int32{7, 2, 1, 0}, Width: 2, Samples: []int32{2},
	}
	got := nn.Batch{Tokens: []int32{1, 2, 3}, Width: 9, Tables: []int32{4}} // what an earlier step left
	lower(&got, b, 4, 4)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("lower = %+v\nwant %+v", got, want)
	}
	lower(&got, &actors.Batch{}, 2, 4)
	if got.Rows() != 2 || got.Sequences() != 0 || got.Slots[1] != nn.Padding {
		t.Errorf("dummy batch = %+v, want two rows of padding", got)
	}
}

func TestExecute(t *testing.T) {
	a, b := []int32{1, 2, 3}, []int32{4}
	done := executorOf(actortest.NewModel(vocab, limits)).execute(t.Context(), step(5, a, b))
	if done.Epoch != 1 || done.Step != 5 || done.Incarnation != 9 || done.Err != nil || done.Lost || len(done.Sampled) != 2 {
		t.Fatalf("execute = %+v", done)
	}
	for i, prompt := range [][]int32{a, b} {
		if s := done.Sampled[i]; s.Request != actors.RequestID(i+1) || s.Token != actortest.Next(prompt, vocab) || s.Logprobs != nil || s.Err != nil {
			t.Errorf("sampled %+v, want token %d for request %d", s, actortest.Next(prompt, vocab), i+1)
		}
	}
}

// TestPositionOfSampledToken: the random number belongs to the position that the token will have.
func TestPositionOfSampledToken(t *testing.T) {
	prompt := []int32{1, 2, 3}
	s := step(0, prompt)
	p := sample.Params{Temperature: 5, TopP: 1, Seed: 12, Logprobs: 2}
	s.Batch.Rows[0].Sampling = p
	m := actortest.NewModel(vocab, limits)
	done := executorOf(m).execute(t.Context(), s)
	var sampler sample.Sampler
	logits := make([]float32, vocab)
	for id := range logits {
		logits[id] = 10 - float32((id-int(actortest.Next(prompt, vocab))+vocab)%vocab)/4
	}
	token, lp := sampler.Sample(logits, p, len(prompt))
	if got := done.Sampled[0]; got.Token != token || !reflect.DeepEqual(got.Logprobs, lp) {
		t.Errorf("sampled %+v, want token %d with %+v", got, token, lp)
	}
}

func TestNotFiniteNamesLayerAndPosition(t *testing.T) {
	for _, tt := range []struct {
		layer int32
		want  string
	}{
		{3, `output of layer 3 is not finite (NaN or Inf) at position 1: check the checkpoint with "moectl doctor --model DIR"`},
		{actortest.Layers, `output of the final norm or the head is not finite (NaN or Inf) at position 1: check the checkpoint with "moectl doctor --model DIR"`},
	} {
		m := actortest.NewModel(vocab, limits)
		m.Bad = func(token int32) int32 {
			if token == 7 {
				return tt.layer
			}
			return -1
		}
		done := executorOf(m).execute(t.Context(), step(0, []int32{1, 7}, []int32{7, 1}))
		if done.Err != nil || len(done.Sampled) != 2 {
			t.Fatalf("step: %+v", done)
		}
		if err := done.Sampled[0].Err; err == nil || err.Error() != tt.want {
			t.Errorf("bad request: %v, want %s", err, tt.want)
		}
		if good := done.Sampled[1]; good.Err != nil || good.Token != actortest.Next([]int32{7, 1}, vocab) {
			t.Errorf("its neighbour: %+v", good)
		}
	}
}

func TestStepErrors(t *testing.T) {
	fault := func(c hal.Class) error { return &hal.Error{Op: "MatMul", Device: "cpu:0", Class: c, Detail: "no"} }
	for _, tt := range []struct {
		name    string
		before  func(call int) error
		calls   int // that the model sees in two steps
		lost    bool
		message string // "" if the first step succeeds
	}{
		{"transient once", func(call int) error {
			if call == 1 {
				return fault(hal.Transient)
			}
			return nil
		}, 3, false, ""},
		{"transient for good", func(int) error { return fault(hal.Transient) }, 2 * attempts, false, "cpu:0: MatMul"},
		{"caller's fault", func(int) error { return fault(hal.CallerFault) }, 2, false, "cpu:0: MatMul"},
		{"error without a class", func(int) error { return errors.New("odd") }, 2, false, "odd"},
		{"device lost", func(int) error { return fault(hal.DeviceLost) }, 1, true, "device lost"},
		{"panic", func(int) error { panic("index out of range") }, 1, true, "panic on the device thread: index out of range"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, calls := actortest.NewModel(vocab, limits), 0
			m.Before = func(_ context.Context, call int, _ *nn.Batch) error {
				calls++
				return tt.before(call)
			}
			e := executorOf(m)
			done := e.execute(t.Context(), step(0, []int32{1}))
			if tt.message == "" && (done.Err != nil || len(done.Sampled) != 1) || tt.message != "" && (done.Err == nil || !strings.Contains(done.Err.Error(), tt.message)) {
				t.Errorf("step: %+v, want error %q", done, tt.message)
			}
			again := e.execute(t.Context(), step(1, []int32{1}))
			if done.Lost != tt.lost || again.Lost != tt.lost || calls != tt.calls {
				t.Errorf("lost %v, then %v after %d calls; want %v, %d calls", done.Lost, again.Lost, calls, tt.lost, tt.calls)
			}
		})
	}
}
