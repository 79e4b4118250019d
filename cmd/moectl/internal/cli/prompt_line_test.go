package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/internal/config"
	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/sample"
)

func ptr[T any](v T) *T { return &v }

func TestParseLine(t *testing.T) {
	for line, want := range map[string]prompt{
		`{"prompt": "a"}`:                                    {text: "a"},
		`{"prompt": ""}`:                                     {text: ""},
		`{"prompt": []}`:                                     {ids: []int32{}},
		`{"prompt": [0, 5.0, 1e1]}`:                          {ids: []int32{0, 5, 10}},
		`{"prompt": "a", "stop": "x"}`:                       {text: "a", stop: []string{"x"}},
		`{"prompt": "a", "stop": []}`:                        {text: "a", stop: []string{}},
		`{"prompt": "a", "stop": null}`:                      {text: "a"},
		`{"prompt": "a", "top_k": -1}`:                       {text: "a", topK: ptr(-1)},
		`{"prompt": "a", "top_k": 4611686018427387904}`:      {text: "a", topK: ptr(1 << 62)},
		`{"prompt": "a", "max_tokens": 4611686018427387904}`: {text: "a", maxTokens: ptr(1 << 62)},
		`{"prompt": "a", "logprobs": -1}`:                    {text: "a", logprobs: ptr(-1)},
		`{"prompt": "a", "logprobs": null}`:                  {text: "a", logprobs: ptr(-1)},
		`{"seed": 18446744073709551615, "prompt": "a", "max_tokens": 4e1, "temperature": 0.5, "top_p": 0.25, "ignore_eos": true, "logprobs": 0, "data_parallel_rank": 0}`: {
			text: "a", seed: ptr(uint64(1<<64 - 1)), maxTokens: ptr(40), temperature: ptr(float32(0.5)), topP: ptr(float32(0.25)), ignoreEOS: ptr(true), logprobs: ptr(0), engine: ptr(0),
		},
	} {
		got, err := parseLine([]byte(line), 1)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", line, got, err)
		}
	}
}

func TestParseLineNamesAllFaults(t *testing.T) {
	for line, want := range map[string]string{
		``:                                 `is not JSON: unexpected EOF`,
		`{"prompt": "a"`:                   `is not JSON: unexpected EOF`,
		`{"prompt": "a"} {}`:               `something follows the JSON object`,
		`"a"`:                              `must be a JSON object`,
		`null`:                             `must be a JSON object`,
		`{}`:                               `no "prompt"`,
		`{"prompt": null}`:                 `no "prompt"`,
		`{"prompt": 5}`:                    `prompt: 5: must be a text or a list of token ids`,
		`{"prompt": [1, 1.5]}`:             `prompt: token 1: 1.5: must be a token id`,
		`{"prompt": [2147483648]}`:         `prompt: token 0: 2147483648: must be a token id from 0 to 2147483647`,
		`{"prompt": ["a"]}`:                `prompt: token 0: "a": must be a token id`,
		`{"prompt": "a", "prompt": "b"}`:   `prompt: is there twice`,
		`{"prompt": "a", "Max-Tokens": 1}`: `unknown key "Max-Tokens"; did you mean max_tokens?`,
		`{"prompt": "a", "n": 2}`:          `unknown key "n"; legal are data_parallel_rank, ignore_eos`,
		`{"prompt": "a", "max_tokens": -1, "top_p": 2, "seed": -1, "temperature": "x", "ignore_eos": 1, "stop": [1]}`: `seed: -1: must be a whole number from 0 to 18446744073709551615; temperature: "x": must be a number; ignore_eos: 1: must be true or false; stop: item 0: 1: must be a text; max_tokens=-1: must be ≥ 0; top_p=2: must be above 0`,
		`{"prompt": "a", "max_tokens": 1e400}`:             `max_tokens: 1e400: must be a whole number`,
		`{"prompt": "a", "max_tokens": 1e-99999999}`:       `max_tokens: 1e-99999999: must be a whole number`,
		`{"prompt": "a", "max_tokens": 1e19}`:              `max_tokens: 1e19: must be a whole number from -9223372036854775808 to 9223372036854775807`,
		`{"prompt": "a", "temperature": 1e39}`:             `temperature: 1e39: is too large: must be at most 3.4028235e+38`,
		`{"prompt": "a", "temperature": 1e-46}`:            `temperature: 1e-46: is too close to 0: must be 0, or at least 1e-45`,
		`{"prompt": "a", "temperature": -1}`:               `temperature=-1: must be a finite number ≥ 0`,
		`{"prompt": "a", "logprobs": -2}`:                  `logprobs: -2: must be 0 or more, at most the vocabulary, or -1 for none`,
		`{"prompt": "a", "logprobs": null, "logprobs": 1}`: `logprobs: is there twice`,
		`{"prompt": "a", "top_k": -2}`:                     `top_k=-2: must be ≥ 1, or 0 or -1`,
		`{"prompt": "a", "stop": ["x", ""]}`:               `stop: item 1: must not be empty`,
		`{"prompt": "a", "stop": ""}`:                      `stop: "": must not be empty`,
		"{\"prompt\": \"a\xff\"}":                          `is not UTF-8: byte 13 is 0xff`,
		"{\"prompt\": \"\ufffd\xc3\"}":                     `is not UTF-8: byte 15 is 0xc3`,
		`{"prompt": "a", "logprobs": true}`:                `logprobs: true: must be a whole number`,
		`{"prompt": "a", "stop": 5}`:                       `stop: 5: must be a text or a list of texts`,
		`{"prompt": "a", "data_parallel_rank": -1}`:        `data_parallel_rank=-1: must be 0 … 0`,
	} {
		if _, err := parseLine([]byte(line), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", line, err, want)
		}
	}
}

// FuzzParseLine looks for a line that panics, or that is taken with values no setting may have.
func FuzzParseLine(f *testing.F) {
	for _, seed := range []string{`{"prompt": "a"}`, `{"prompt": [1, 2.0]}`, `{"prompt": "a", "seed": 1e-9999999}`, `{"a": {"b": []}}`, "{\"prompt\": \"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		p, err := parseLine(line, 1)
		if err != nil {
			return
		}
		for _, n := range []*int{p.maxTokens, p.engine} {
			if n != nil && *n < 0 {
				t.Errorf("%q: took a negative number: %+v", line, p)
			}
		}
		if p.logprobs != nil && *p.logprobs < -1 || p.topK != nil && *p.topK < -1 || slices.Contains(p.stop, "") || !utf8.Valid(line) {
			t.Errorf("%q: took %+v", line, p)
		}
		for _, id := range p.ids {
			if id < 0 {
				t.Errorf("%q: took token %d", line, id)
			}
		}
	})
}

func TestRequestTakesFlagsForWhatTheLineDoesNotSay(t *testing.T) {
	s := config.Defaults()
	s.Seed, s.Stop, s.TopK = 7, []string{"END"}, -1
	got := prompt{text: "a"}.request(3, s)
	want := actors.Request{Text: "a", MaxTokens: 128, Sampling: sample.Params{Temperature: 1, TopP: 1, TopK: -1, Seed: 10, Logprobs: sample.NoLogprobs}, Stop: []string{"END"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	got = prompt{ids: []int32{1}, seed: ptr(uint64(0)), stop: []string{}, maxTokens: ptr(0), temperature: ptr(float32(0)), engine: ptr(0)}.request(3, s)
	if got.Sampling.Seed != 0 || len(got.Stop) != 0 || got.MaxTokens != 0 || got.Sampling.Temperature != 0 || *got.Engine != 0 {
		t.Errorf("what the line says does not win: %+v", got)
	}
}

func TestGenerationConfigCountsLessThanTheUser(t *testing.T) {
	load := func(flags map[string]any) *config.Loaded {
		s, err := config.Load(config.Sources{Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	model := modelconfig.Generation{Temperature: ptr(0.6), TopP: ptr(0.95), TopK: ptr(40), MinP: ptr(0.0), RepetitionPenalty: ptr(1.0)}
	s := load(map[string]any{"top_p": "1"})
	if err := takeGeneration(s, model); err != nil || s.Temperature != 0.6 || s.TopP != 1 || s.TopK != 40 {
		t.Errorf("%v, %+v", err, s.Settings)
	}
	for key, g := range map[string]modelconfig.Generation{"temperature=1e-46: is too close to 0": {Temperature: ptr(1e-46)}, "top_p=1e+39: is too large": {TopP: ptr(1e39)}, "min_p to 0.1": {MinP: ptr(0.1)}, "repetition_penalty to 1.1": {RepetitionPenalty: ptr(1.1)}} {
		err := takeGeneration(load(nil), g)
		if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
