package gateway

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/model/token"
)

func loadTokenizer(t *testing.T) *token.Tokenizer {
	tok, err := token.Load("../../test/models/tokenizer")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func greedy() sample.Params { return sample.Params{TopP: 1, Logprobs: sample.NoLogprobs} }

func TestCheckAccepts(t *testing.T) {
	tok, one := loadTokenizer(t), 1
	l := Limits{VocabSize: tok.VocabSize(), MaxModelLen: 8, Engines: 2, Tokenizer: tok}
	ids := []int32{5, 6, 7}
	for _, tt := range []struct {
		name string
		r    actors.Request
		want []int32
	}{
		{"ids", actors.Request{IDs: ids, MaxTokens: 0, Sampling: greedy()}, ids},
		{"ids beat text", actors.Request{IDs: ids, Text: "no", Sampling: greedy()}, ids},
		{"text with BOS", actors.Request{Text: "KING", Sampling: greedy(), Stop: []string{"."}}, tok.EncodePrompt("KING")},
		{"an engine, more tokens than fit", actors.Request{IDs: ids, MaxTokens: math.MaxInt, Engine: &one, Sampling: greedy()}, ids},
		{"one token below the model length", actors.Request{IDs: []int32{1, 2, 3, 4, 5, 6, 7}, Sampling: greedy()}, []int32{1, 2, 3, 4, 5, 6, 7}},
	} {
		if got, err := Check(tt.r, l); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	tok, two, minus := loadTokenizer(t), 2, -1
	with := Limits{VocabSize: 100, MaxModelLen: 8, Engines: 2, Tokenizer: tok}
	here := with
	here.Engines, here.Local = 4, Span{0, 2}
	alone := here
	alone.Local = Span{1, 2}
	without := with
	without.Tokenizer, without.TokenizerErr = nil, errors.New("tokenizer.json: no such file")
	ids := []int32{5}
	for _, tt := range []struct {
		name string
		r    actors.Request
		l    Limits
		want []string // the faults, in order
	}{
		{"no tokens", actors.Request{IDs: []int32{}, Sampling: greedy()}, with, []string{"prompt is empty"}},
		{
			"id outside",
			actors.Request{IDs: []int32{1, 100, 3, -4}, Sampling: greedy()},
			with,
			[]string{"prompt token 1 has id 100: must be 0 … 99", "prompt has 1 more ids outside"},
		},
		{"too long", actors.Request{IDs: make([]int32, 8), Sampling: greedy()}, with, []string{"prompt has 8 tokens, max-model-len is 8"}},
		{"negative max_tokens", actors.Request{IDs: ids, MaxTokens: -1, Sampling: greedy()}, with, []string{"max_tokens=-1: must be ≥ 0"}},
		{"empty stop", actors.Request{IDs: ids, Stop: []string{"a", ""}, Sampling: greedy()}, with, []string{"stop[1] is empty"}},
		{"engine beyond", actors.Request{IDs: ids, Engine: &two, Sampling: greedy()}, with, []string{"data_parallel_rank=2: must be 0 … 1"}},
		{"negative engine", actors.Request{IDs: ids, Engine: &minus, Sampling: greedy()}, with, []string{"data_parallel_rank=-1: must be 0 … 1"}},
		{"engine elsewhere", actors.Request{IDs: ids, Engine: &two, Sampling: greedy()}, here, []string{"data_parallel_rank=2 lives on another node: this one serves engines 0 … 1"}},
		{"engine elsewhere, one here", actors.Request{IDs: ids, Engine: &two, Sampling: greedy()}, alone, []string{"this one serves engine 1;"}},
		{"text without tokenizer", actors.Request{Text: "a", Sampling: greedy()}, without, []string{"give token ids: tokenizer.json: no such file"}},
		{"stop without tokenizer", actors.Request{IDs: ids, Stop: []string{"a"}, Sampling: greedy()}, without, []string{"stop: answers have no text without a tokenizer: tokenizer.json"}},
		{
			"all at once",
			actors.Request{IDs: []int32{200}, MaxTokens: -1, Stop: []string{""}, Engine: &two},
			with,
			[]string{"prompt token 0", "max_tokens", "top_p=0", "stop[0]", "data_parallel_rank"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Check(tt.r, tt.l)
			if err == nil || got != nil {
				t.Fatalf("Check = %v, %v; want faults", got, err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("faults %q, want %d", lines, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("fault %q, want it to say %q", lines[i], want)
				}
			}
		})
	}
}
