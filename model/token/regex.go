package token

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// foreign finds constructs that the reference's engine (Oniguruma) reads in another way than the one used here does, so that
// they would split differently in silence: class intersections, POSIX classes, \h, \R, \X, \K, class subtraction.
var foreign = regexp.MustCompile(`&&|\[\[?:\^?[a-z]+:\]|\\[hHRXKyYOg]|-\[`)

// regexFinder compiles an expression of a tokenizer.json.
//
// The expression is the model author's, the text the client's. The scanners are linear in the text. The engine is not bounded
// in time: its limit holds for one match at a time, so it would not bound a text, and the ids of a text must not depend on
// how busy the machine is. The published expressions of GPT-2, cl100k and V3 take time in proportion to the text also where
// it makes them backtrack (BenchmarkBacktracking); one that repeats a repetition, such as (a+)+b, need not, and no text for it
// is safe. Who takes prompts from strangers bounds their length.
func regexFinder(pattern string) (finder, error) {
	if scan, ok := scanners[pattern]; ok {
		return scan, nil
	}
	return engineFinder(pattern)
}

// engineFinder is regexFinder without the hand-written scanners. ^ and $ match at every line, as in the reference.
func engineFinder(pattern string) (finder, error) {
	if at := foreign.FindString(pattern); at != "" {
		return nil, fmt.Errorf("pattern %q: %q is not supported (it means something else in this regex engine)", pattern, at)
	}
	re, err := regexp2.Compile(pattern, regexp2.Multiline, regexp2.OptionMaxBacktrackingStackSize(-1))
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return func(text string, found func(start, end int)) {
		at, atRune := 0, 0 // the same place in bytes and in characters
		seek := func(index int) int {
			for ; atRune < index; atRune++ {
				_, n := utf8.DecodeRuneInString(text[at:])
				at += n
			}
			return at
		}
		// There is neither a time limit nor a stack limit, the only errors that a search can return.
		_ = re.FindRunesMatches([]rune(text), 0, func(m regexp2.MatchView) bool {
			index, length, _ := m.GroupRange(0)
			start := seek(index)
			found(start, seek(index+length))
			return true
		})
	}, nil
}

// literalFinder finds the places of a fixed text.
func literalFinder(literal string) finder {
	return func(text string, found func(start, end int)) {
		for at := 0; literal != ""; {
			i := strings.Index(text[at:], literal)
			if i < 0 {
				return
			}
			found(at+i, at+i+len(literal))
			at += i + len(literal)
		}
	}
}

// runeFinder finds single characters.
func runeFinder(is func(rune) bool) finder {
	return func(text string, found func(start, end int)) {
		for i, r := range text {
			if is(r) {
				found(i, i+utf8.RuneLen(r))
			}
		}
	}
}

// isPunctuation is \p{P} and every ASCII sign, also $+<=>^`|~.
func isPunctuation(r rune) bool {
	return unicode.IsPunct(r) || r < utf8.RuneSelf && unicode.IsSymbol(r)
}
