package node

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/model/token"
	"github.com/moerack/moerack/model/weights"
)

// models is the repository's folder of test models; its README says where the reference values come from.
const models = "../../test/models"

// fixture is the part of a model's reference values that is about generation.
type fixture struct {
	Prompts []struct {
		Name           string    `json:"name"`
		IDs            []int32   `json:"ids"`
		GreedyIDs      []int32   `json:"greedy_ids"`
		GreedyLogprobs []float64 `json:"greedy_logprobs"`
	} `json:"prompts"`
}

func readFixture(t *testing.T, path string) (f fixture) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(models, path))
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil || len(f.Prompts) == 0 {
		t.Fatalf("%s: %d prompts, %v", path, len(f.Prompts), err)
	}
	return f
}

// modelOptions are those of a node over a test model on the CPU.
func modelOptions(t *testing.T, dir string) Options {
	t.Helper()
	dir = filepath.Join(models, dir)
	o := Defaults()
	o.Bus = newBus(t, membus.New(membus.Options{}))
	var err error
	if o.Config, err = config.Load(dir); err != nil {
		t.Fatal(err)
	}
	if o.Checkpoint, err = weights.Open(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Checkpoint.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Tokenizer, o.TokenizerErr = token.Load(dir)
	o.Open = func(index int) (hal.Device, error) { return cpu.Open(cpu.Options{Index: index}) }
	o.MaxNumSeqs = 8 // a small KV cache
	return o
}

// TestFixtures: all prompts of a model at once give the reference's tokens and log-probabilities; with the small models also
// bit for bit the same in small chunks of prompts, and each prompt alone.
func TestFixtures(t *testing.T) {
	for _, tt := range []struct{ model, fixture string }{
		{"tiny-v2lite", "fixtures/tiny-v2lite.json"},
		{"tiny-v3", "fixtures/tiny-v3.json"},
		{"tiny-v3-fp8", "fixtures/tiny-v3-fp8.json"},
		{"random/rnd-v2-greedy", "random/fixtures/rnd-v2-greedy.json"},
		{"random/rnd-v2-group", "random/fixtures/rnd-v2-group.json"},
		{"random/rnd-v3-yarn", "random/fixtures/rnd-v3-yarn.json"},
	} {
		t.Run(tt.model, func(t *testing.T) {
			small := strings.HasPrefix(tt.model, "random/")
			if racing && tt.model != "random/rnd-v3-yarn" {
				t.Skip("under the race detector one small model is enough")
			}
			f := readFixture(t, tt.fixture)
			o := modelOptions(t, tt.model)
			whole := generate(t, o, f, len(f.Prompts))
			for i, got := range whole {
				checkFixture(t, f, i, got)
			}
			if !small {
				return
			}
			o.MaxNumBatchedTokens, o.BlockSize = 7, 5
			for i, got := range generate(t, o, f, len(f.Prompts)) {
				same(t, f.Prompts[i].Name+" in chunks of 7", got, whole[i])
			}
			o = modelOptions(t, tt.model)
			for i, got := range generate(t, o, f, 1) {
				same(t, f.Prompts[i].Name+" alone", got, whole[i])
			}
		})
	}
}

// generate runs the fixture's prompts on a fresh node, so many at once.
func generate(t *testing.T, o Options, f fixture, atOnce int) []outcome {
	t.Helper()
	n := startNode(t, o)
	var out []outcome
	for chunk := range slices.Chunk(f.Prompts, atOnce) {
		var streams []*gateway.Stream
		for _, p := range chunk {
			streams = append(streams, submit(t, n, actors.Request{
				IDs: p.IDs, MaxTokens: len(p.GreedyIDs), IgnoreEOS: true,
				Sampling: sample.Params{TopP: 1, Logprobs: 3},
			}))
		}
		for _, s := range streams {
			out = append(out, collect(t, s))
		}
	}
	if s := n.Stats(); s.GeneratedTokens == 0 || s.Engines[0].KVBlocksFree != s.Engines[0].KVBlocks || s.Ranks[0].WeightBytes == 0 {
		t.Errorf("stats %+v", s)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	return out
}

func checkFixture(t *testing.T, f fixture, i int, got outcome) {
	t.Helper()
	p := f.Prompts[i]
	if got.finish != actors.FinishLength || !slices.Equal(got.tokens, p.GreedyIDs) {
		t.Fatalf("%s: %s %v, tokens\n%v\nwant\n%v", p.Name, got.finish, got.err, got.tokens, p.GreedyIDs)
	}
	for j, lp := range got.logprobs {
		// 2e-4: the README's tolerance for log-probabilities.
		if d := math.Abs(float64(lp.Logprob.Logprob) - p.GreedyLogprobs[j]); d > 2e-4 || lp.Top[0].Token != got.tokens[j] || len(lp.Top) != 3 {
			t.Errorf("%s: token %d: log-probability off by %g, best %+v", p.Name, j, d, lp.Top)
		}
	}
}

func same(t *testing.T, what string, got, want outcome) {
	t.Helper()
	if !slices.Equal(got.tokens, want.tokens) || got.text != want.text || !slices.EqualFunc(got.logprobs, want.logprobs, func(a, b sample.Logprobs) bool {
		return a.Logprob == b.Logprob && slices.Equal(a.Top, b.Top)
	}) {
		t.Errorf("%s: another answer than all at once", what)
	}
}

// TestTextAndStopStrings: the text of an answer is the decoding of its tokens, and a stop string cuts it.
func TestTextAndStopStrings(t *testing.T) {
	o := modelOptions(t, "tiny-v3")
	n := startNode(t, o)
	defer func() { _ = n.Close(t.Context()) }()
	full := collect(t, submit(t, n, actors.Request{Text: "KING HENRY:", MaxTokens: 40, IgnoreEOS: true}))
	if want := o.Tokenizer.Decode(full.tokens, true); full.text != want || !slices.Equal(full.prompt, o.Tokenizer.EncodePrompt("KING HENRY:")) {
		t.Fatalf("text %q of tokens %v, want %q; prompt %v", full.text, full.tokens, want, full.prompt)
	}
	at := len(full.text) / 2
	stop := full.text[at : at+3]
	cut := collect(t, submit(t, n, actors.Request{Text: "KING HENRY:", MaxTokens: 40, IgnoreEOS: true, Stop: []string{"never seen", stop}}))
	first := full.text[:strings.Index(full.text, stop)]
	if cut.finish != actors.FinishStop || cut.text != first || !slices.Equal(cut.tokens, full.tokens[:len(cut.tokens)]) || len(cut.tokens) >= len(full.tokens) {
		t.Errorf("stopped at %q: %s, text %q of %d tokens; want %q", stop, cut.finish, cut.text, len(cut.tokens), first)
	}
}
