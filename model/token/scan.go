package token

import (
	"unicode"
	"unicode/utf8"
)

// The three expressions of DeepSeek-V3's pre-tokenizer, exactly as its tokenizer.json has them.
const (
	patternDigits = `\p{N}{1,3}`
	patternCJK    = `[一-龥぀-ゟ゠-ヿ]+`
	patternMain   = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

// scanners are hand-written equals of expressions, by the exact text of the expression.
var scanners = map[string]finder{
	patternDigits: scanDigits,
	patternCJK:    scanCJK,
	patternMain:   scanMain,
}

// Classes of characters that the main expression tells apart.
const (
	classWord  uint8 = 1 << iota // \p{L} or \p{M}
	classMark                    // \p{M}
	classPunct                   // \p{P} or \p{S}
	classSpace                   // \s
	classBreak                   // \r or \n
)

var asciiClass = func() (table [utf8.RuneSelf]uint8) {
	for r := range rune(utf8.RuneSelf) {
		table[r] = classify(r)
	}
	return table
}()

func classify(r rune) (c uint8) {
	switch {
	case unicode.IsLetter(r):
		c = classWord
	case unicode.IsMark(r):
		c = classWord | classMark
	case unicode.IsPunct(r), unicode.IsSymbol(r):
		c = classPunct
	}
	if unicode.IsSpace(r) {
		c |= classSpace
	}
	if r == '\r' || r == '\n' {
		c |= classBreak
	}
	return c
}

// classAt returns the class and size of the character at text[i:], (0, 0) at the end.
func classAt(text string, i int) (class uint8, size int) {
	if i >= len(text) {
		return 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return asciiClass[b], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return classify(r), n
}

// runOf returns the end of the run of characters of the given classes that starts at i.
func runOf(text string, i int, classes uint8) int {
	for {
		c, n := classAt(text, i)
		if c&classes == 0 {
			return i
		}
		i += n
	}
}

func scanDigits(text string, found func(start, end int)) {
	start, count := 0, 0 // the open match, if count > 0
	for i, r := range text {
		number := unicode.IsNumber(r)
		if count == 3 || count > 0 && !number {
			found(start, i)
			count = 0
		}
		if number {
			if count == 0 {
				start = i
			}
			count++
		}
	}
	if count > 0 {
		found(start, len(text))
	}
}

func scanCJK(text string, found func(start, end int)) {
	start := -1 // of the open match
	for i, r := range text {
		in := r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF
		if in && start < 0 {
			start = i
		} else if !in && start >= 0 {
			found(start, i)
			start = -1
		}
	}
	if start >= 0 {
		found(start, len(text))
	}
}

func scanMain(text string, found func(start, end int)) {
	for i := 0; i < len(text); {
		end, size := matchMain(text, i)
		if end == i {
			i += size
			continue
		}
		found(i, end)
		i = end
	}
}

// matchMain returns the end of the match of patternMain at i, i itself if there is none, and the size of the character
// there. The alternatives come in the order of the expression.
func matchMain(text string, i int) (end, size int) {
	class, size := classAt(text, i)
	next := i + size

	if text[i] < utf8.RuneSelf && class&classPunct != 0 { // one ASCII sign, ASCII letters
		j := next
		for j < len(text) && (text[j]|0x20) >= 'a' && (text[j]|0x20) <= 'z' {
			j++
		}
		if j > next {
			return j, size
		}
	}
	if class&classWord != 0 { // letters and marks
		return runOf(text, next, classWord), size
	}
	if class&(classPunct|classBreak) == 0 { // the same after one character that is neither letter, sign nor line break
		if j := runOf(text, next, classWord); j > next {
			return j, size
		}
	}
	signs := i
	if text[i] == ' ' {
		signs = next
	}
	if j := runOf(text, signs, classPunct); j > signs { // signs after at most one blank, with the line breaks behind them
		return runOf(text, j, classBreak), size
	}
	if class&classSpace != 0 {
		return matchSpace(text, i), size
	}
	return i, size
}

// matchSpace is the last three alternatives, for a run of white space at i: up to its last line break, else all of it at
// the end of the text, else all but its last character unless that is the only one.
func matchSpace(text string, i int) int {
	j, last, lastBreak := i, i, -1
	for {
		c, n := classAt(text, j)
		if c&classSpace == 0 {
			break
		}
		if c&classBreak != 0 {
			lastBreak = j + n
		}
		last = j
		j += n
	}
	switch {
	case lastBreak >= 0:
		return lastBreak
	case j == len(text) || last == i:
		return j
	}
	return last
}
