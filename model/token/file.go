package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// tokenizerJSON is tokenizer.json as Hugging Face tokenizers writes it; parts with several types stay raw.
type tokenizerJSON struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         *modelJSON      `json:"model"`
}

type modelJSON struct {
	Type                    string           `json:"type"`
	Dropout                 *float64         `json:"dropout"`
	ContinuingSubwordPrefix string           `json:"continuing_subword_prefix"`
	EndOfWordSuffix         string           `json:"end_of_word_suffix"`
	ByteFallback            bool             `json:"byte_fallback"`
	IgnoreMerges            bool             `json:"ignore_merges"`
	Vocab                   map[string]int64 `json:"vocab"`
	Merges                  mergesJSON       `json:"merges"`
}

// mergesJSON reads merges in both spellings: "a b" strings and ["a", "b"] pairs.
type mergesJSON [][2]string

func (m *mergesJSON) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimLeft(data[1:], " \t\r\n"), []byte(`"`)) {
		var lines []string
		if err := json.Unmarshal(data, &lines); err != nil {
			return fmt.Errorf("merges: %w", err)
		}
		*m = make(mergesJSON, len(lines))
		for i, line := range lines {
			left, right, ok := strings.Cut(line, " ")
			if !ok || left == "" || right == "" || strings.Contains(right, " ") {
				return fmt.Errorf("merges[%d]: %q is not two tokens with a blank between", i, line)
			}
			(*m)[i] = [2]string{left, right}
		}
		return nil
	}
	var pairs [][]string
	if err := json.Unmarshal(data, &pairs); err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	*m = make(mergesJSON, len(pairs))
	for i, p := range pairs {
		if len(p) != 2 {
			return fmt.Errorf("merges[%d]: has %d tokens instead of 2", i, len(p))
		}
		(*m)[i] = [2]string{p[0], p[1]}
	}
	return nil
}

// absent tells whether a part is missing or null.
func absent(part json.RawMessage) bool {
	return len(part) == 0 || string(part) == "null"
}

// partType returns the "type" of a part.
func partType(part json.RawMessage) (string, error) {
	var head struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(part, &head)
	return head.Type, err
}

// faults collects what is wrong with a file, so that all of it is told at once.
type faults struct {
	list []string
	more int
}

// maxFaults is how many faults are told in full.
const maxFaults = 8

func (f *faults) addf(format string, args ...any) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// err returns nil if there were none.
func (f *faults) err(name string) error {
	if len(f.list) == 0 {
		return nil
	}
	text := strings.Join(f.list, "; ")
	if f.more > 0 {
		text += fmt.Sprintf("; and %d more", f.more)
	}
	return fmt.Errorf("%s: %s", name, text)
}
