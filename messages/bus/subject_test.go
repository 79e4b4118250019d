package bus

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckSubject(t *testing.T) {
	for _, s := range []string{"a", "a.b", "a.=2e.-_", "$x.é", strings.Repeat("x", MaxSubject)} {
		if err := CheckSubject(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, tt := range []struct{ s, want string }{
		{"", "empty token"},
		{".", "empty token"},
		{".a", "empty token"},
		{"a.", "empty token"},
		{"a..b", "empty token"},
		{"a.*", `'*' at byte 2`},
		{"a.>", `'>' at byte 2`},
		{"a b", `' ' at byte 1`},
		{"a\r\nPUB x 0", `'\r' at byte 1`},
		{"a\x00", `'\x00' at byte 1`},
		{"\xff", "not UTF-8"},
		{strings.Repeat("x", MaxSubject+1), "1025 bytes, at most 1024"},
	} {
		err := CheckSubject(tt.s)
		if !errors.Is(err, ErrSubject) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want ErrSubject with %q", tt.s, err, tt.want)
		}
	}
}
