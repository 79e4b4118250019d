package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/moerack/moerack/internal/config"
)

// lineKeys are the keys of a prompt line and how each is read.
var lineKeys = map[string]func(p *prompt, value any) error{
	"prompt":             readPrompt,
	"max_tokens":         func(p *prompt, v any) (err error) { p.maxTokens, err = wholeNumber(v, 0); return err },
	"temperature":        func(p *prompt, v any) (err error) { p.temperature, err = number(v); return err },
	"top_p":              func(p *prompt, v any) (err error) { p.topP, err = number(v); return err },
	"top_k":              func(p *prompt, v any) (err error) { p.topK, err = wholeNumber(v, -1); return err },
	"seed":               func(p *prompt, v any) (err error) { p.seed, err = unsigned(v); return err },
	"stop":               readStop,
	"ignore_eos":         readIgnoreEOS,
	"logprobs":           func(p *prompt, v any) (err error) { p.logprobs, err = wholeNumber(v, 0); return err },
	"data_parallel_rank": func(p *prompt, v any) (err error) { p.engine, err = wholeNumber(v, 0); return err },
}

// parseLine reads one JSON object. The error names all that is wrong with it.
func parseLine(line []byte) (prompt, error) {
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
		case value != nil: // null says nothing
			if err := read(&p, value); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", key, err))
			}
		}
		seen[key] = seen[key] || value != nil
	})
	switch {
	case err != nil:
		faults = append(faults, err)
	case !seen["prompt"]:
		faults = append(faults, errors.New(`no "prompt": give a text or a list of token ids`))
	}
	return p, joinFaults(faults)
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
		p.stop = []string{v}
		return nil
	case []any:
		p.stop = make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				return fmt.Errorf("item %d: %s: must be a text", i, shown(item))
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

// longestNumber bounds the digits of a whole number, so that building it costs nothing.
const longestNumber = 64

// whole reads a whole number however it is written: 40, 40.0 and 4e1 are the same. Numbers that no setting can hold are
// refused before they are built.
func whole(value any) (*big.Int, bool) {
	n, ok := value.(json.Number)
	if !ok || len(n) > longestNumber {
		return nil, false
	}
	switch f, err := n.Float64(); {
	case err != nil || math.Abs(f) >= 1<<65:
		return nil, false
	case math.Abs(f) < 1: // 0, or a fraction, or too small for a float64
		mantissa, _, _ := strings.Cut(strings.ToLower(string(n)), "e")
		return new(big.Int), !strings.ContainsAny(mantissa, "123456789")
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return nil, false
	}
	return r.Num(), true
}

func wholeNumber(value any, least int64) (*int, error) {
	n, ok := whole(value)
	if !ok || !n.IsInt64() || n.Int64() < least || n.Int64() > math.MaxInt32 {
		return nil, fmt.Errorf("%s: must be a whole number, %d or more", shown(value), least)
	}
	i := int(n.Int64())
	return &i, nil
}

func unsigned(value any) (*uint64, error) {
	n, ok := whole(value)
	if !ok || !n.IsUint64() {
		return nil, fmt.Errorf("%s: must be a whole number from 0 to %d", shown(value), uint64(math.MaxUint64))
	}
	u := n.Uint64()
	return &u, nil
}

func number(value any) (*float32, error) {
	n, ok := value.(json.Number)
	if !ok {
		return nil, fmt.Errorf("%s: must be a number", shown(value))
	}
	f, err := strconv.ParseFloat(string(n), 32)
	if err != nil {
		return nil, fmt.Errorf("%s: is too large", shown(value))
	}
	f32 := float32(f)
	return &f32, nil
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
