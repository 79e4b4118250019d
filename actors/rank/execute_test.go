package rank

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/topology"
)

const vocab = 50

var limits = nn.Limits{Rows: 16, Samples: 4, Sequences: 4, ModelLen: 16, Blocks: 8, BlockSize: 4}

func greedy() sample.Params { return sample.Params{TopP: 1, Logprobs: sample.NoLogprobs} }

func options() Options {
	return Options{Rank: 0, Node: "n", BlockSize: limits.BlockSize, Logger: slog.New(slog.DiscardHandler)}
}

func executorOf(m *actortest.Model) *executor {
	return newExecutor(options(), Opened{Model: m, Facts: actors.RankFacts{Layers: actortest.Layers, Progress: &m.Progress}})
}

// step makes a run step of whole prompts, all sampled, request i in blocks 2i, 2i+1.
func step(number uint64, prompts ...[]int32) *actors.Step {
	b := &actors.Batch{}
	for i, p := range prompts {
		b.Rows = append(b.Rows, actors.Rows{Request: actors.RequestID(i + 1), Tokens: p, Blocks: []int32{int32(2 * i), int32(2*i + 1)}, Sample: true, Sampling: greedy()})
	}
	return &actors.Step{Plan: &actors.Plan{Epoch: 1, Wave: 1, Step: number, Action: actors.Run, PadTo: max(1, b.Tokens()), Exchange: topology.Local, Stages: 1}, Batch: b, Incarnation: 9}
}

func TestLower(t *testing.T) {
	b := &actors.Batch{Rows: []actors.Rows{
		{Tokens: []int32{5, 6}, Position: 3, Blocks: []int32{7, 2}},
		{Tokens: []int32{9}, Position: 0, Prompt: true, Blocks: []int32{1}, Sample: true},
	}}
	want := nn.Batch{
		Tokens: []int32{5, 6, 9, 0}, Positions: []int32{3, 4, 0, 0}, Slots: []int32{31, 8, 4, nn.Padding}, Seqs: []int32{0, 0, 1, nn.Padding},
		Tables: []int32{7, 2, 1, 0}, Width: 2, Samples: []int32{2}, Decode: 2,
	}
	got := nn.Batch{Tokens: []int32{1, 2, 3}, Width: 9, Tables: []int32{4}} // what an earlier step left
	if masked, err := lower(&got, b, 4, 4, nil, []bool{true}); err != nil || !reflect.DeepEqual(got, want) || slices.Contains(masked, true) {
		t.Errorf("lower = %+v, masked %v, error %v\nwant %+v", got, masked, err, want)
	}
	if _, err := lower(&got, &actors.Batch{}, 2, 4, nil, nil); err != nil || got.Rows() != 2 || got.Sequences() != 0 || got.Slots[1] != nn.Padding {
		t.Errorf("dummy batch = %+v, error %v; want two rows of padding", got, err)
	}
}

// TestLowerFillsPlaceholders: with the token chosen before; a run that has none, or one that ends it, is a row of padding in its place.
func TestLowerFillsPlaceholders(t *testing.T) {
	decode := func(id actors.RequestID, block int32, ends ...int32) actors.Rows {
		return actors.Rows{Request: id, Tokens: []int32{actors.Placeholder}, Position: 2, Blocks: []int32{block}, Sample: true, Ends: ends}
	}
	b := &actors.Batch{Rows: []actors.Rows{decode(1, 3, 9), decode(2, 4, 8, 9), decode(3, 5), decode(4, 6), {Tokens: []int32{7}, Prompt: true, Blocks: []int32{1}}}}
	want := nn.Batch{
		Tokens: []int32{5, 0, 9, 0, 7, 0}, Positions: []int32{2, 0, 2, 0, 0, 0}, Slots: []int32{14, nn.Padding, 22, nn.Padding, 4, nn.Padding},
		Seqs: []int32{0, nn.Padding, 1, nn.Padding, 2, nn.Padding}, Tables: []int32{3, 5, 1}, Width: 1, Samples: []int32{0, 2}, Decode: 4,
	}
	var got nn.Batch
	masked, err := lower(&got, b, 6, 4, map[actors.RequestID]int32{1: 5, 2: 9, 3: 9}, nil)
	if err != nil || !reflect.DeepEqual(got, want) || !slices.Equal(masked, []bool{false, true, false, true, false}) {
		t.Errorf("lower = %+v, masked %v, error %v\nwant %+v", got, masked, err, want)
	}
}

// TestLowerMasksEndedRequests: their rows are padding in their place, prompt rows too.
func TestLowerMasksEndedRequests(t *testing.T) {
	b := &actors.Batch{Rows: []actors.Rows{
		{Request: 2, Tokens: []int32{actors.Placeholder}, Position: 1, Blocks: []int32{3}, Sample: true},
		{Request: 1, Tokens: []int32{5, 6}, Prompt: true, Blocks: []int32{7}, Sample: true},
		{Request: 3, Tokens: []int32{8}, Position: 2, Prompt: true, Blocks: []int32{1}, Sample: true},
	}}
	b.End(1)
	b.End(2)
	want := nn.Batch{
		Tokens: []int32{0, 0, 0, 8}, Positions: []int32{0, 0, 0, 2}, Slots: []int32{nn.Padding, nn.Padding, nn.Padding, 6},
		Seqs: []int32{nn.Padding, nn.Padding, nn.Padding, 0}, Tables: []int32{1}, Width: 1, Samples: []int32{3}, Decode: 1,
	}
	var got nn.Batch
	masked, err := lower(&got, b, 4, 4, map[actors.RequestID]int32{2: 5}, nil)
	if err != nil || !reflect.DeepEqual(got, want) || !slices.Equal(masked, []bool{true, true, false}) {
		t.Errorf("lower = %+v, masked %v, error %v\nwant %+v", got, masked, err, want)
	}
}

func TestLowerRefuses(t *testing.T) {
	for _, tt := range []struct {
		rows  actors.Rows
		padTo int
		want  string
	}{
		{actors.Rows{Request: 3, Tokens: []int32{1, 2}, Blocks: []int32{0}}, 1, "batch of 2 rows, its plan pads to 1"},
		{actors.Rows{Request: 3, Tokens: []int32{actors.Placeholder, 2}, Blocks: []int32{0}}, 2, "request 3: a placeholder in a run of 2 tokens"},
		{actors.Rows{Request: 3}, 2, "request 3: a run without tokens"},
	} {
		var dst nn.Batch
		if _, err := lower(&dst, &actors.Batch{Rows: []actors.Rows{tt.rows}}, tt.padTo, 4, nil, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// TestLowerKeepsPromptsBehind: rows of prompts stand behind those that continue answers, or the step is not run.
func TestLowerKeepsPromptsBehind(t *testing.T) {
	b := &actors.Batch{Rows: []actors.Rows{
		{Request: 1, Tokens: []int32{5, 6}, Prompt: true, Blocks: []int32{7}},
		{Request: 2, Tokens: []int32{8}, Position: 2, Blocks: []int32{1}},
	}}
	var dst nn.Batch
	if _, err := lower(&dst, b, 3, 4, nil, nil); err == nil || !strings.Contains(err.Error(), "request 2: a row that continues an answer behind rows of prompts") {
		t.Errorf("error %v", err)
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
		{"device lost", func(int) error { return fault(hal.DeviceLost) }, 1, true, "rank 0 on node n: step 1: layer 0: attention: cpu:0: MatMul: no [device lost]"},
		{"panic", func(int) error { panic("index out of range") }, 1, true, "rank 0 on node n: step 1: layer 0: attention: panic on the device thread: index out of range"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, calls := actortest.NewModel(vocab, limits), 0
			m.Before = func(_ context.Context, call int, _ *nn.Batch) error {
				calls++
				return tt.before(call)
			}
			e := executorOf(m)
			done := e.execute(t.Context(), step(1, []int32{1}))
			if tt.message == "" && (done.Err != nil || len(done.Sampled) != 1) || tt.message != "" && (done.Err == nil || !strings.Contains(done.Err.Error(), tt.message)) {
				t.Errorf("step: %+v, want error %q", done, tt.message)
			}
			again := e.execute(t.Context(), step(2, []int32{1}))
			if done.Lost != tt.lost || again.Lost != tt.lost || calls != tt.calls {
				t.Errorf("lost %v, then %v after %d calls; want %v, %d calls", done.Lost, again.Lost, calls, tt.lost, tt.calls)
			}
		})
	}
}

// TestStepsContinueEachOther: a step is handed over before the tokens of the one before it are known; it takes them from there,
// its row is padding where the request has ended, and no step takes them from an older one.
func TestStepsContinueEachOther(t *testing.T) {
	prompt := []int32{1, 2, 3}
	answer := actortest.Answer(prompt, 3, vocab)
	next := func(number uint64, position int, ends ...int32) *actors.Step {
		s := step(number, []int32{actors.Placeholder})
		s.Batch.Rows[0].Position, s.Batch.Rows[0].Ends = position, ends
		return s
	}
	m := actortest.NewModel(vocab, limits)
	m.Bad = func(token int32) int32 {
		if token == answer[1] {
			return 2
		}
		return -1
	}
	e := executorOf(m)
	for i, tt := range []struct {
		step   *actors.Step
		token  int32
		masked bool
		bad    bool
	}{
		{step(1, prompt), answer[0], false, false},
		{next(2, 3, answer[1]), answer[1], false, false},
		{next(3, 4, answer[1]), 0, true, false}, // ended by answer[1]
		{next(4, 5), 0, true, false},            // nothing was chosen in step 3
		{step(5, prompt), answer[0], false, false},
		{next(7, 3), 0, true, false}, // step 6 was none of ours
		{step(8, prompt), answer[0], false, false},
		{next(9, 3), answer[1], false, false},
		{next(10, 4), 0, false, true}, // feeds answer[1]
		{next(11, 5), 0, true, false},
	} {
		done := e.execute(t.Context(), tt.step)
		if done.Err != nil || len(done.Sampled) != 1 {
			t.Fatalf("step %d: %+v", i, done)
		}
		if s := done.Sampled[0]; s.Request != 1 || s.Token != tt.token || s.Masked != tt.masked || (s.Err != nil) != tt.bad {
			t.Errorf("step %d: sampled %+v, want token %d, masked %v, bad %v", tt.step.Plan.Step, s, tt.token, tt.masked, tt.bad)
		}
	}
}

// TestNoStepAfterAFailedOneThatOthersTakePartIn: the others are elsewhere, so what waits is not begun; nothing is repeated.
func TestNoStepAfterAFailedOneThatOthersTakePartIn(t *testing.T) {
	m, calls := actortest.NewModel(vocab, limits), 0
	m.Before = func(context.Context, int, *nn.Batch) error {
		calls++
		return &hal.Error{Op: "MatMul", Device: "cpu:0", Class: hal.Transient, Detail: "no"}
	}
	e := executorOf(m)
	e.epoch(true)
	if done := e.execute(t.Context(), step(1, []int32{1})); done.Lost || hal.ClassOf(done.Err) != hal.Transient {
		t.Errorf("step 1: %+v", done)
	}
	if done := e.execute(t.Context(), step(2, []int32{1})); done.Lost || hal.ClassOf(done.Err) != hal.Aborted || !strings.Contains(done.Err.Error(), "layer 0: attention") {
		t.Errorf("step 2: %v, want it aborted with the cause", done.Err)
	}
	m.Before = nil
	e.epoch(true)
	if done := e.execute(t.Context(), step(1, []int32{1})); done.Err != nil || calls != 1 {
		t.Errorf("next epoch: %v after %d calls", done.Err, calls)
	}
}

// sharer panics where it shares its tokens.
type sharer struct{ *actortest.Model }

func (m sharer) Share(context.Context, []int32) error {
	defer m.Progress.End()
	panic("lost its voice")
}

func TestPanicWhileSharing(t *testing.T) {
	m := sharer{actortest.NewModel(vocab, limits)}
	e := newExecutor(options(), Opened{Model: m, Facts: actors.RankFacts{Progress: &m.Progress}})
	done := e.execute(t.Context(), step(1, []int32{1}))
	if !done.Lost || done.Sampled != nil || done.Err.Error() != "rank 0 on node n: step 1: tokens: panic on the device thread: lost its voice" {
		t.Errorf("step: %+v", done)
	}
}
