package script

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// fixture is what test/models/README.md calls a fixture: reference values of a model.
type fixture struct {
	Prompts []struct {
		Name           string    `json:"name"`
		IDs            []int32   `json:"ids"`
		GreedyIDs      []int32   `json:"greedy_ids"`
		GreedyLogprobs []float64 `json:"greedy_logprobs"`
	} `json:"prompts"`
}

// logprobTolerance is that of test/models/README.md, section Tolerances.
const logprobTolerance = 2e-4

func readFixture(ts *testscript.TestScript, path string) fixture {
	data, err := os.ReadFile(filepath.Join(ts.Getenv("MODELS"), path))
	ts.Check(err)
	var f fixture
	ts.Check(json.Unmarshal(data, &f))
	return f
}

// fixturePrompts writes "prompts FIXTURE FILE": a prompts file that asks for the fixture's greedy answers.
func fixturePrompts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: prompts FIXTURE FILE")
	}
	var out bytes.Buffer
	for _, p := range readFixture(ts, args[0]).Prompts {
		ts.Check(json.NewEncoder(&out).Encode(map[string]any{
			"prompt": p.IDs, "max_tokens": len(p.GreedyIDs), "temperature": 0, "ignore_eos": true, "logprobs": 1,
		}))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o600))
}

// fixtureAnswers checks "greedy FIXTURE FILE": the objects in the file are the fixture's greedy answers.
func fixtureAnswers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: greedy FIXTURE FILE")
	}
	prompts := readFixture(ts, args[0]).Prompts
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[1])))
	for i, p := range prompts {
		var got struct {
			Index          int     `json:"index"`
			PromptTokenIDs []int32 `json:"prompt_token_ids"`
			TokenIDs       []int32 `json:"token_ids"`
			Logprobs       []struct {
				Logprob float64 `json:"logprob"`
			} `json:"logprobs"`
		}
		ts.Check(dec.Decode(&got))
		if got.Index != i || !slices.Equal(got.PromptTokenIDs, p.IDs) || !slices.Equal(got.TokenIDs, p.GreedyIDs) {
			ts.Fatalf("prompt %s: index %d, tokens %v, want %v", p.Name, got.Index, got.TokenIDs, p.GreedyIDs)
		}
		if len(got.Logprobs) != len(p.GreedyLogprobs) {
			ts.Fatalf("prompt %s: %d log-probabilities, want %d", p.Name, len(got.Logprobs), len(p.GreedyLogprobs))
		}
		for j, l := range got.Logprobs {
			if math.Abs(l.Logprob-p.GreedyLogprobs[j]) > logprobTolerance {
				ts.Fatalf("prompt %s: token %d: log-probability %v, want %v", p.Name, j, l.Logprob, p.GreedyLogprobs[j])
			}
		}
	}
	if dec.More() {
		ts.Fatalf("more than %d answers", len(prompts))
	}
}
