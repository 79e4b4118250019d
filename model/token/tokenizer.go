package token

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Tokenizer encodes text and decodes ids. It is read-only but for a bounded cache, and safe for concurrent use.
type Tokenizer struct {
	normalize  func(string) string // nil: none
	words      *preTokenizer
	verbatim   *addedMatcher // added tokens looked for in the text as given
	normalized *addedMatcher // added tokens looked for in normalised text
	bpe        bpe
	cache      *wordCache

	pieces  []string         // (ids) token text as in the file; "" where an id is not used
	raw     [][]byte         // (ids) bytes a token decodes to
	special []bool           // (ids) left out of decoded text by skipSpecial
	byText  map[string]int32 // inverse of pieces

	bos            int32   // −1: not named
	prefix, suffix []int32 // what addSpecial puts around a text
}

// Encode returns the ids of text. Added tokens written out in text become their ids. With addSpecial BOS comes first, and
// EOS last, as add_bos_token and add_eos_token of tokenizer_config.json say (where they do not say, as the post-processor
// of tokenizer.json does), also if text already begins with BOS. Invalid UTF-8 is read as U+FFFD.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	ids := make([]int32, 0, len(text)/3+2)
	if addSpecial {
		ids = append(ids, t.prefix...)
	}
	ids = t.appendText(ids, text)
	if addSpecial {
		ids = append(ids, t.suffix...)
	}
	return ids
}

// EncodePrompt is Encode with addSpecial for text prompts of users: one that already begins with BOS gets none added.
func (t *Tokenizer) EncodePrompt(text string) []int32 {
	ids := t.Encode(text, true)
	if n := len(t.prefix); n > 0 && len(ids) > n && t.prefix[n-1] == t.bos && ids[n] == t.bos {
		return slices.Delete(ids, n-1, n)
	}
	return ids
}

func (t *Tokenizer) appendText(ids []int32, text string) []int32 {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	added := func(id int32) { ids = append(ids, id) }
	word := func(w string) { ids = t.appendWord(ids, w) }
	plain := func(part string) { t.words.each(part, word) }
	t.verbatim.cut(text, func(part string) {
		if t.normalize != nil {
			part = t.normalize(part)
		}
		t.normalized.cut(part, plain, added)
	}, added)
	return ids
}

func (t *Tokenizer) appendWord(ids []int32, word string) []int32 {
	if len(word) > cacheWordBytes {
		return t.bpe.appendWord(ids, word)
	}
	if known, ok := t.cache.get(word); ok {
		return append(ids, known...)
	}
	n := len(ids)
	ids = t.bpe.appendWord(ids, word)
	t.cache.put(word, ids[n:])
	return ids
}

// Piece returns the token's text as the file spells it, in byte-level characters ("Ġ" for a blank), or "" if id names none.
func (t *Tokenizer) Piece(id int32) string {
	if id < 0 || int(id) >= len(t.pieces) {
		return ""
	}
	return t.pieces[id]
}

// VocabSize returns one more than the highest id. A model's embedding may be larger (padded).
func (t *Tokenizer) VocabSize() int { return len(t.pieces) }
