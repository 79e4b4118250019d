package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Float32 reads a decimal number. One that float32 cannot hold, because it is too large or would become 0, is refused with the
// legal range; NaN and infinities written as such are left to whoever knows what the number means.
func Float32(text string) (float32, error) {
	wide, err := strconv.ParseFloat(text, 32)
	switch f := float32(wide); {
	case err != nil && math.IsInf(wide, 0):
		return 0, fmt.Errorf("is too large: must be at most %v", float32(math.MaxFloat32))
	case err != nil:
		return 0, errors.New("must be a number")
	case f == 0 && !isZero(text):
		return 0, fmt.Errorf("is too close to 0: must be 0, or at least %v", float32(math.SmallestNonzeroFloat32))
	default:
		return f, nil
	}
}

// isZero reports whether a number that strconv takes is written with no other digit than 0.
func isZero(text string) bool {
	text = strings.ToLower(strings.TrimLeft(text, "+-"))
	exponent := "e"
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		text, exponent = hex, "p"
	}
	mantissa, _, _ := strings.Cut(text, exponent)
	return !strings.ContainsAny(mantissa, "123456789abcdef")
}
