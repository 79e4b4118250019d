package bus

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxSubject is the most bytes of a subject.
const MaxSubject = 1024

// CheckSubject returns ErrSubject with the reason if s cannot be published on or subscribed to. One that can is at most
// MaxSubject bytes: tokens separated by dots, none of them empty, without spaces, control characters or the wildcards * and >.
// Transports call it.
func CheckSubject(s string) error {
	if s == "" || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || strings.Contains(s, "..") {
		return fmt.Errorf("%w: %q has an empty token: build it with package subject", ErrSubject, s)
	}
	if len(s) > MaxSubject {
		return fmt.Errorf("%w: it has %d bytes, at most %d are legal: %.40q…: build it with package subject", ErrSubject, len(s), MaxSubject, s)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: %q is not UTF-8: build it with package subject", ErrSubject, s)
	}
	bad := strings.IndexFunc(s, func(r rune) bool {
		return r == '*' || r == '>' || unicode.IsSpace(r) || unicode.IsControl(r)
	})
	if bad >= 0 {
		return fmt.Errorf("%w: %q has %q at byte %d: build it with package subject", ErrSubject, s, []rune(s[bad:])[0], bad)
	}
	return nil
}
