package token

import "unicode/utf8"

type utf8State int

const (
	utf8Valid      utf8State = iota // a complete character
	utf8Invalid                     // a part that no continuation can complete
	utf8Incomplete                  // the input ends inside a character
)

// nextChar looks at the first character of b (not empty) and returns the bytes it takes. An invalid part is the longest
// prefix of some valid character (Unicode 3.9, "maximal subpart"), so that each becomes one U+FFFD, as in the reference.
// utf8.DecodeRune alone would make one of every byte.
func nextChar(b []byte) (size int, state utf8State) {
	if _, n := utf8.DecodeRune(b); n > 1 || b[0] < utf8.RuneSelf {
		return n, utf8Valid
	}
	var length int
	lo, hi := byte(0x80), byte(0xBF) // limits of the second byte
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		length = 2
	case c >= 0xE0 && c <= 0xEF:
		length = 3
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		length = 4
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	default:
		return 1, utf8Invalid
	}
	for i := 1; i < length; i++ {
		if i == len(b) {
			return i, utf8Incomplete
		}
		if b[i] < lo || b[i] > hi {
			return i, utf8Invalid
		}
		lo, hi = 0x80, 0xBF
	}
	return 1, utf8Invalid // not reached: a complete valid character was taken above
}

// appendChars appends the complete characters of b to dst, U+FFFD for each invalid part, and returns how many bytes it
// used: all but an incomplete character at the end.
func appendChars(dst, b []byte) ([]byte, int) {
	used := 0
	for used < len(b) {
		n, state := nextChar(b[used:])
		switch state {
		case utf8Valid:
			dst = append(dst, b[used:used+n]...)
		case utf8Invalid:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case utf8Incomplete:
			return dst, used
		}
		used += n
	}
	return dst, used
}
