package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/internal/config"
	"github.com/moerack/moerack/model/sample"
)

// lineKeys are the keys of a prompt line and how each is read.
var lineKeys = map[string]func(p *prompt, value any) error{
	"prompt":             readPrompt,
	"max_tokens":         func(p *prompt, v any) (err error) { p.maxTokens, err = wholeNumber(v); return err },
	"temperature":        func(p *prompt, v any) (err error) { p.temperature, err = number(v); return err },
	"top_p":              func(p *prompt, v any) (err error) { p.topP, err = number(v); return err },
	"top_k":              func(p *prompt, v any) (err error) { p.topK, err = wholeNumber(v); return err },
	"seed":               func(p *prompt, v any) (err error) { p.seed, err = unsigned(v); return err },
	"stop":               readStop,
	"ignore_eos":         readIgnoreEOS,
	"logprobs":           func(p *prompt, v any) (err error) { p.logprobs, err = logprobsNumber(v); return err },
	"data_parallel_rank": func(p *prompt, v any) (err error) { p.engine, err = wholeNumber(v); return err },
}

// parseLine reads one JSON object, for a layout of so many engines. The error names all that is wrong with it.
func parseLine(line []byte, engines int) (prompt, error) {
	if err := checkUTF8(string(line)); err != nil { // the decoder would put U+FFFD in its place
		return prompt{}, err
	}
	var p prompt
	var faults []error
	seen := map[string]bool{}
	err := eachKey(line, func(key string, value any) {
		read, ok := lineKeys[key]
		switch {
		case !ok:
			faults = append(faults, fmt.Errorf("unknown key %q%s", key, meant(key)))
		case seen[key]:
			faults = append(faults, fmt.Errorf("%s: is there twice", key))
		case value == nil && key == "logprobs": // null is how an answer says that there are none
			p.logprobs = new(int)
			*p.logprobs = sample.NoLogprobs
		case value != nil: // null says nothing
			if err := read(&p, value); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", key, err))
			}
		}
		seen[key] = seen[key] || value != nil || key == "logprobs"
	})
	switch {
	case err != nil:
		faults = append(faults, err)
	case !seen["prompt"]:
		faults = append(faults, errors.New(`no "prompt": give a text or a list of token ids`))
	}
	faults = append(faults, p.faults(engines)...)
	return p, joinFaults(faults)
}

// faults returns what is wrong with the numbers of a line whatever the model is.
func (p prompt) faults(engines int) []error {
	p.ids, p.stop = []int32{0}, nil // any that are right
	_, err := gateway.Check(p.request(0, config.Defaults()), gateway.Limits{VocabSize: math.MaxInt, MaxModelLen: math.MaxInt, Engines: engines})
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

// joinFaults puts faults on one line.
func joinFaults(faults []error) error {
	switch len(faults) {
	case 0:
		return nil
	case 1:
		return faults[0]
	}
	texts := make([]string, len(faults))
	for i, err := range faults {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}

// eachKey calls visit for the keys of one JSON object, in order; numbers come as json.Number.
func eachKey(line []byte, visit func(key string, value any)) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	start, err := dec.Token()
	if err != nil {
		return notJSON(err)
	}
	if start != json.Delim('{') {
		return errors.New(`must be a JSON object such as {"prompt": "text"}`)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return notJSON(err)
		}
		visit(key.(string), value) // inside an object the decoder gives no other key
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object: one line is one prompt")
	}
	return nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("is not JSON: %w", err)
}

// meant returns a question for the key that was probably meant.
func meant(key string) string {
	names := make([]string, 0, len(lineKeys))
	for name := range lineKeys {
		names = append(names, name)
	}
	slices.Sort(names)
	if near := config.Nearest(strings.ToLower(strings.ReplaceAll(key, "-", "_")), names); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; legal are " + strings.Join(names, ", ")
}

func readPrompt(p *prompt, value any) error {
	switch v := value.(type) {
	case string:
		p.text = v
		return nil
	case []any:
		p.ids = make([]int32, len(v))
		for i, item := range v {
			n, ok := whole(item)
			if !ok || !n.IsInt64() || n.Int64() < 0 || n.Int64() > math.MaxInt32 {
				return fmt.Errorf("token %d: %s: must be a token id from 0 to %d", i, shown(item), math.MaxInt32)
			}
			p.ids[i] = int32(n.Int64())
		}
		return nil
	default:
		return fmt.Errorf("%s: must be a text or a list of token ids", shown(value))
	}
}

func readStop(p *prompt, value any) error {
	switch v := value.(type) {
	case string:
		if v == "" {
			return errors.New(`"": must not be empty`)
		}
		p.stop = []string{v}
		return nil
	case []any:
		p.stop = make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				return fmt.Errorf("item %d: %s: must be a text", i, shown(item))
			}
			if text == "" {
				return fmt.Errorf("item %d: must not be empty", i)
			}
			p.stop[i] = text
		}
		return nil
	default:
		return fmt.Errorf("%s: must be a text or a list of texts", shown(value))
	}
}

func readIgnoreEOS(p *prompt, value any) error {
	b, ok := value.(bool)
	if !ok {
		return fmt.Errorf("%s: must be true or false", shown(value))
	}
	p.ignoreEOS = &b
	return nil
}

// shown returns a value as JSON for a message, its beginning if it is long.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if runes := []rune(string(text)); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return string(text)
}
