package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/moerack/moerack/internal/config"
	"github.com/moerack/moerack/model/sample"
)

// longestNumber bounds the digits of a whole number, so that building it costs nothing.
const longestNumber = 64

// whole reads a whole number however it is written: 40, 40.0 and 4e1 are the same. Numbers that no setting can hold are
// refused before they are built.
func whole(value any) (*big.Int, bool) {
	n, ok := value.(json.Number)
	if !ok || len(n) > longestNumber {
		return nil, false
	}
	switch f, err := n.Float64(); {
	case err != nil || math.Abs(f) >= 1<<65:
		return nil, false
	case math.Abs(f) < 1: // 0, or a fraction, or too small for a float64
		mantissa, _, _ := strings.Cut(strings.ToLower(string(n)), "e")
		return new(big.Int), !strings.ContainsAny(mantissa, "123456789")
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return nil, false
	}
	return r.Num(), true
}

// wholeNumber takes what a flag takes; which of these numbers are legal is said elsewhere, as for flags.
func wholeNumber(value any) (*int, error) {
	n, ok := whole(value)
	if !ok || !n.IsInt64() || n.Int64() < math.MinInt || n.Int64() > math.MaxInt {
		return nil, fmt.Errorf("%s: must be a whole number from %d to %d", shown(value), math.MinInt, math.MaxInt)
	}
	i := int(n.Int64())
	return &i, nil
}

func logprobsNumber(value any) (*int, error) {
	n, err := wholeNumber(value)
	if err == nil && *n < sample.NoLogprobs {
		return nil, fmt.Errorf("%d: must be 0 or more, at most the vocabulary, or -1 for none", *n)
	}
	return n, err
}

func unsigned(value any) (*uint64, error) {
	n, ok := whole(value)
	if !ok || !n.IsUint64() {
		return nil, fmt.Errorf("%s: must be a whole number from 0 to %d", shown(value), uint64(math.MaxUint64))
	}
	u := n.Uint64()
	return &u, nil
}

func number(value any) (*float32, error) {
	n, ok := value.(json.Number)
	if !ok {
		return nil, fmt.Errorf("%s: must be a number", shown(value))
	}
	f, err := config.Float32(string(n))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown(value), err)
	}
	return &f, nil
}
