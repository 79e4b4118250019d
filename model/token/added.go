package token

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is an entry of added_tokens: text that becomes one id before anything else is split.
type addedToken struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only where no word character touches it
	LStrip     bool   `json:"lstrip"`      // takes the white space before it along
	RStrip     bool   `json:"rstrip"`      // and after it
	Normalized bool   `json:"normalized"`  // looked for in normalised text, after the others
	Special    bool   `json:"special"`
}

// addedMatcher finds the tokens of one pass: leftmost, of these the longest.
type addedMatcher struct {
	byContent map[string]*addedToken
	lengths   [256][]int // by first byte: lengths of the contents, longest first
}

func newAddedMatcher() *addedMatcher {
	return &addedMatcher{byContent: make(map[string]*addedToken)}
}

// add makes content stand for tok; an empty content is never found.
func (m *addedMatcher) add(content string, tok *addedToken) {
	if content == "" {
		return
	}
	m.byContent[content] = tok
	l := &m.lengths[content[0]]
	if !slices.Contains(*l, len(content)) {
		*l = append(*l, len(content))
		slices.SortFunc(*l, func(a, b int) int { return b - a })
	}
}

// find returns the first token at or behind from, nil if there is none.
func (m *addedMatcher) find(text string, from int) (tok *addedToken, start, end int) {
	if len(m.byContent) == 0 {
		return nil, 0, 0
	}
	for i := from; i < len(text); i++ {
		for _, n := range m.lengths[text[i]] {
			if i+n <= len(text) {
				if tok := m.byContent[text[i:i+n]]; tok != nil {
					return tok, i, i + n
				}
			}
		}
	}
	return nil, 0, 0
}

// cut calls plain with the text between tokens and added with each token's id, in order.
func (m *addedMatcher) cut(text string, plain func(string), added func(id int32)) {
	done, from := 0, 0
	for {
		tok, start, end := m.find(text, from)
		if tok == nil {
			break
		}
		from = end
		if tok.SingleWord && (wordBefore(text, start) || wordAfter(text, end)) {
			continue
		}
		if tok.LStrip {
			start = max(done, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if tok.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
			from = end
		}
		if done < start {
			plain(text[done:start])
		}
		added(int32(tok.ID))
		done = end
	}
	if done < len(text) {
		plain(text[done:])
	}
}

func wordBefore(text string, i int) bool {
	r, n := utf8.DecodeLastRuneInString(text[:i])
	return n > 0 && isWord(r)
}

func wordAfter(text string, i int) bool {
	r, n := utf8.DecodeRuneInString(text[i:])
	return n > 0 && isWord(r)
}

// isWord is \w of Unicode's regular expressions (UTS 18, annex C).
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
