package cli

import (
	"fmt"
	"unicode/utf8"
)

// checkUTF8 refuses a text that is none.
func checkUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i, r := range text {
		if _, width := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && width == 1 {
			return fmt.Errorf("is not UTF-8: byte %d is %#02x", i, text[i])
		}
	}
	return nil
}
