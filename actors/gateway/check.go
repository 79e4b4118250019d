package gateway

import (
	"errors"
	"fmt"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/token"
)

// Limits are what a request is checked against.
type Limits struct {
	VocabSize    int
	MaxModelLen  int              // tokens; a prompt must be shorter
	Engines      int              // data-parallel size of the layout
	Local        Span             // which of them the node serves; the zero value: all
	Tokenizer    *token.Tokenizer // nil if there is none
	TokenizerErr error            // why there is none
}

// Span is a run of engines, [From, To).
type Span struct{ From, To int }

// Has reports whether an engine is one of them.
func (s Span) Has(engine int) bool { return engine >= s.From && engine < s.To }

// String names the engines: "engine 2", "engines 2 … 5".
func (s Span) String() string {
	if s.To-s.From == 1 {
		return fmt.Sprintf("engine %d", s.From)
	}
	return fmt.Sprintf("engines %d … %d", s.From, s.To-1)
}

// Check validates a request and returns its prompt as token ids; IDs of the request are returned as they are. The error joins
// all faults, each naming the field, its value and the legal ones. It is pure, so that a command can check its prompts before
// a model is loaded.
func Check(r actors.Request, l Limits) ([]int32, error) {
	ids, faults := prompt(r, l)
	if n := len(ids); n >= l.MaxModelLen && n > 0 {
		faults = append(faults, fmt.Errorf("prompt has %d tokens, max-model-len is %d: a prompt must be shorter than it, so that at least one token can follow", n, l.MaxModelLen))
	}
	if r.MaxTokens < 0 {
		faults = append(faults, fmt.Errorf("max_tokens=%d: must be ≥ 0", r.MaxTokens))
	}
	faults = append(faults, r.Sampling.Validate(l.VocabSize)...)
	for i, s := range r.Stop {
		if s == "" {
			faults = append(faults, fmt.Errorf("stop[%d] is empty: a stop string has at least one character", i))
		}
	}
	if len(r.Stop) > 0 && l.Tokenizer == nil {
		faults = append(faults, fmt.Errorf("stop: answers have no text without a tokenizer: %w", l.noTokenizer()))
	}
	if r.Engine != nil {
		faults = append(faults, engine(*r.Engine, l)...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return ids, nil
}

// engine returns what is wrong with the engine that a request asks for.
func engine(e int, l Limits) []error {
	switch {
	case e < 0 || e >= l.Engines:
		return []error{fmt.Errorf("data_parallel_rank=%d: must be 0 … %d (the engines of this layout)", e, l.Engines-1)}
	case l.Local != (Span{}) && !l.Local.Has(e):
		return []error{fmt.Errorf("data_parallel_rank=%d lives on another node: this one serves %s; send the request there, or leave the engine open", e, l.Local)}
	default:
		return nil
	}
}

func prompt(r actors.Request, l Limits) (ids []int32, faults []error) {
	switch {
	case r.IDs != nil:
		ids = r.IDs
	case l.Tokenizer != nil:
		ids = l.Tokenizer.EncodePrompt(r.Text)
	default:
		return nil, []error{fmt.Errorf("prompt is text, but there is no tokenizer; give token ids: %w", l.noTokenizer())}
	}
	if len(ids) == 0 {
		return nil, []error{errors.New("prompt is empty: give at least one token")}
	}
	for i, id := range ids {
		if id < 0 || int(id) >= l.VocabSize {
			faults = append(faults, fmt.Errorf("prompt token %d has id %d: must be 0 … %d (the vocabulary)", i, id, l.VocabSize-1))
			if rest := outside(ids[i+1:], l.VocabSize); rest > 0 {
				faults = append(faults, fmt.Errorf("prompt has %d more ids outside the vocabulary", rest))
			}
			break
		}
	}
	return ids, faults
}

func outside(ids []int32, vocab int) (n int) {
	for _, id := range ids {
		if id < 0 || int(id) >= vocab {
			n++
		}
	}
	return n
}

func (l Limits) noTokenizer() error {
	if l.TokenizerErr != nil {
		return l.TokenizerErr
	}
	return errors.New("the model directory has no tokenizer.json")
}
