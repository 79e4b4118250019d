package token

import (
	"encoding/json"
	"fmt"
	"unicode"
)

// patternGPT2 is what a ByteLevel step with use_regex splits by.
const patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// preTokenizerJSON is a pre_tokenizer of tokenizer.json, the keys of all supported types together.
type preTokenizerJSON struct {
	Type             string             `json:"type"`
	PreTokenizers    []preTokenizerJSON `json:"pretokenizers"`
	Pattern          patternJSON        `json:"pattern"`
	Behavior         splitBehaviour     `json:"behavior"`
	Invert           bool               `json:"invert"`
	IndividualDigits bool               `json:"individual_digits"`
	AddPrefixSpace   *bool              `json:"add_prefix_space"`
	UseRegex         *bool              `json:"use_regex"`
}

type patternJSON struct {
	Regex  *string `json:"Regex"`
	String *string `json:"String"`
}

// preTokenizer cuts normalised text into the words that are merged one by one.
type preTokenizer struct{ steps []step }

// parsePreTokenizer builds the steps; the last one must be ByteLevel, since words are merged from bytes.
func parsePreTokenizer(data json.RawMessage) (*preTokenizer, error) {
	var root preTokenizerJSON
	if err := json.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	list, err := flatten(root, 0)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[len(list)-1].Type != "ByteLevel" {
		return nil, fmt.Errorf("the last step is not ByteLevel; only byte-level BPE is supported")
	}
	p := &preTokenizer{}
	for i, js := range list {
		if js.Type == "ByteLevel" && i+1 < len(list) {
			return nil, fmt.Errorf("step %d of %d: ByteLevel is supported only as the last step", i+1, len(list))
		}
		steps, err := js.steps()
		if err != nil {
			return nil, fmt.Errorf("step %d of %d: %w", i+1, len(list), err)
		}
		p.steps = append(p.steps, steps...)
	}
	return p, nil
}

// flatten replaces Sequences by their members.
func flatten(js preTokenizerJSON, depth int) ([]preTokenizerJSON, error) {
	if js.Type != "Sequence" {
		return []preTokenizerJSON{js}, nil
	}
	if depth > 8 {
		return nil, fmt.Errorf("sequences nested more than 8 deep")
	}
	var out []preTokenizerJSON
	for _, member := range js.PreTokenizers {
		list, err := flatten(member, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

func (js preTokenizerJSON) steps() ([]step, error) {
	switch js.Type {
	case "Split":
		find, err := js.Pattern.finder()
		if err == nil {
			err = js.Behavior.check()
		}
		if err != nil {
			return nil, fmt.Errorf("Split: %w", err)
		}
		return []step{splitStep(find, js.Behavior, js.Invert)}, nil
	case "Digits":
		behaviour := contiguous
		if js.IndividualDigits {
			behaviour = isolated
		}
		return []step{splitStep(runeFinder(unicode.IsNumber), behaviour, false)}, nil
	case "Punctuation":
		if js.Behavior == "" {
			js.Behavior = isolated
		}
		if err := js.Behavior.check(); err != nil {
			return nil, fmt.Errorf("Punctuation: %w", err)
		}
		return []step{splitStep(runeFinder(isPunctuation), js.Behavior, false)}, nil
	case "ByteLevel":
		return js.byteLevelSteps()
	}
	return nil, fmt.Errorf("type %q is not supported (Sequence, Split, Digits, Punctuation, ByteLevel are)", js.Type)
}

// byteLevelSteps leaves the mapping of bytes to characters out: words stay bytes until they are merged. Both keys are on
// when the file does not say.
func (js preTokenizerJSON) byteLevelSteps() ([]step, error) {
	var steps []step
	if js.AddPrefixSpace == nil || *js.AddPrefixSpace {
		steps = append(steps, prefixSpaceStep)
	}
	if js.UseRegex == nil || *js.UseRegex {
		find, err := regexFinder(patternGPT2)
		if err != nil {
			return nil, err
		}
		steps = append(steps, splitStep(find, isolated, false))
	}
	return steps, nil
}

func prefixSpaceStep(piece string, emit func(string)) {
	if piece[0] != ' ' {
		piece = " " + piece
	}
	emit(piece)
}

func (p patternJSON) finder() (finder, error) {
	switch {
	case p.Regex != nil && p.String == nil:
		return regexFinder(*p.Regex)
	case p.String != nil && p.Regex == nil:
		return literalFinder(*p.String), nil
	}
	return nil, fmt.Errorf("pattern must have either Regex or String")
}

// each calls word with the words of text in order; a nil preTokenizer is not allowed, an empty text has no words.
func (p *preTokenizer) each(text string, word func(string)) {
	if text != "" {
		p.from(0, text, word)
	}
}

func (p *preTokenizer) from(i int, piece string, word func(string)) {
	if i == len(p.steps) {
		word(piece)
		return
	}
	p.steps[i](piece, func(part string) { p.from(i+1, part, word) })
}
