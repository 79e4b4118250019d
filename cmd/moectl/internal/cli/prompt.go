package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/internal/config"
	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/sample"
)

// prompt is what the user wrote for one answer. What it does not say, the flags say.
type prompt struct {
	text string
	ids  []int32 // used if not nil

	maxTokens   *int
	temperature *float32
	topP        *float32
	topK        *int
	seed        *uint64
	stop        []string // nil: not given
	ignoreEOS   *bool
	logprobs    *int
	engine      *int
}

// request returns the prompt number index with s for everything it does not say.
func (p prompt) request(index int, s config.Settings) actors.Request {
	r := actors.Request{
		Text:      p.text,
		IDs:       p.ids,
		MaxTokens: or(p.maxTokens, s.MaxTokens),
		Sampling: sample.Params{
			Temperature: or(p.temperature, s.Temperature),
			TopP:        or(p.topP, s.TopP),
			TopK:        or(p.topK, s.TopK),
			Seed:        or(p.seed, s.Seed+uint64(index)),
			Logprobs:    or(p.logprobs, s.Logprobs),
		},
		Stop:      s.Stop,
		IgnoreEOS: or(p.ignoreEOS, s.IgnoreEOS),
		Engine:    p.engine,
	}
	if p.stop != nil {
		r.Stop = p.stop
	}
	return r
}

func or[T any](given *T, otherwise T) T {
	if given != nil {
		return *given
	}
	return otherwise
}

// takeGeneration sets the sampling defaults of a model's generation_config.json where the user said nothing.
func takeGeneration(s *config.Loaded, g modelconfig.Generation) error {
	refuse := func(key string, value float64) error {
		return usagef("--generation-config auto: generation_config.json sets %s to %v, which is not supported: use --generation-config vllm and set the rest by flags", key, value)
	}
	if g.MinP != nil && *g.MinP != 0 {
		return refuse("min_p", *g.MinP)
	}
	if g.RepetitionPenalty != nil && *g.RepetitionPenalty != 1 {
		return refuse("repetition_penalty", *g.RepetitionPenalty)
	}
	var faults []error
	for _, number := range []struct {
		key  string
		from *float64
		to   *float32
	}{{"temperature", g.Temperature, &s.Temperature}, {"top_p", g.TopP, &s.TopP}} {
		if number.from == nil || s.Given(number.key) {
			continue
		}
		value, err := config.Float32(strconv.FormatFloat(*number.from, 'g', -1, 64))
		if err != nil {
			faults = append(faults, usagef("generation_config.json: %s=%v: %w", number.key, *number.from, err))
			continue
		}
		*number.to = value
	}
	if g.TopK != nil && !s.Given("top_k") {
		s.TopK = *g.TopK
	}
	return errors.Join(faults...)
}

// entry is one prompt, or what is wrong with it.
type entry struct {
	where  string // "--prompt 2", "prompts.jsonl:3", "standard input: line 3"
	prompt prompt
	ids    []int32 // of the prompt, once it was checked
	err    error   // names where
}

// request is that of the prompt, by its ids once they are known.
func (e entry) request(index int, s config.Settings) actors.Request {
	r := e.prompt.request(index, s)
	if e.ids != nil {
		r.IDs = e.ids
	}
	return r
}

// fault returns err with the place it was found at before each of its lines.
func (e entry) fault(err error) error {
	return errors.New(e.where + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+e.where+": "))
}
