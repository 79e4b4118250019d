package token

import "unicode/utf8"

// Decode returns the text of ids. Each invalid or unfinished part of UTF-8 becomes one U+FFFD. Ids that name no token are
// left out, with skipSpecial also those marked special.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	var raw []byte
	for _, id := range ids {
		raw = append(raw, t.bytesOf(id, skipSpecial)...)
	}
	if utf8.Valid(raw) {
		return string(raw)
	}
	text, used := appendChars(make([]byte, 0, len(raw)+8), raw)
	if used < len(raw) {
		text = utf8.AppendRune(text, utf8.RuneError)
	}
	return string(text)
}

// bytesOf returns the bytes of one token, nil if it is to be left out. The caller must not change them.
func (t *Tokenizer) bytesOf(id int32, skipSpecial bool) []byte {
	if id < 0 || int(id) >= len(t.pieces) || skipSpecial && t.special[id] {
		return nil
	}
	return t.raw[id]
}

// Detokenizer turns a stream of token ids into text. It holds back the bytes of an unfinished character until a later token
// completes it or makes it invalid. The pushes together are Decode of all ids, less an unfinished character at the very end,
// which is dropped: there is nothing to flush. Not safe for concurrent use; one per sequence.
type Detokenizer struct {
	t           *Tokenizer
	skipSpecial bool
	pending     []byte // at most 3 bytes between pushes
	out         []byte // reused between pushes
}

// NewDetokenizer returns a detokenizer at the start of a sequence; skipSpecial as in Decode.
func NewDetokenizer(t *Tokenizer, skipSpecial bool) *Detokenizer {
	return &Detokenizer{t: t, skipSpecial: skipSpecial}
}

// Push takes the next token and returns the text that became complete with it, possibly "".
func (d *Detokenizer) Push(id int32) string {
	d.pending = append(d.pending, d.t.bytesOf(id, d.skipSpecial)...)
	var used int
	d.out, used = appendChars(d.out[:0], d.pending)
	d.pending = d.pending[:copy(d.pending, d.pending[used:])]
	return string(d.out)
}
