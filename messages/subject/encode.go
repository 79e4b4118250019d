package subject

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longest is how many bytes of an encoded name are kept; a longer one ends in a digest, so that no name exceeds what a server
// takes as a subject.
const longest = 128

// encode makes one token of any name, different for different names: letters, digits, "-" and "_" stay, every other byte
// becomes "=" with two hex digits, and the empty name becomes "=".
func encode(name string) string {
	if name == "" {
		return "="
	}
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			b.Write([]byte{'=', digits[c>>4], digits[c&15]})
		}
	}
	if b.Len() > longest {
		sum := sha256.Sum256([]byte(name))
		return b.String()[:longest] + "==" + hex.EncodeToString(sum[:16]) // no short name has "=="
	}
	return b.String()
}
