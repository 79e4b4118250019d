package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// decode sets field from a value of a file (YAML's types) or of a flag or variable (text). The error holds the value and
// what is legal.
func decode(field reflect.Value, kind Kind, value any) error {
	if kind == List {
		texts, err := list(value)
		if err == nil {
			field.Set(reflect.ValueOf(texts))
		}
		return err
	}
	text, ok := scalar(value)
	if !ok {
		return fmt.Errorf("%v: must be a single value", value)
	}
	wrong := func(want string) error { return fmt.Errorf("%q: %s", text, want) }
	switch kind {
	case Whole:
		n, err := strconv.ParseInt(text, 10, strconv.IntSize)
		if errors.Is(err, strconv.ErrSyntax) {
			return wrong("must be a whole number") // how small it may be is for whoever knows what it means
		}
		if err != nil {
			return wrong(fmt.Sprintf("must be a whole number from %d to %d", math.MinInt, math.MaxInt))
		}
		field.SetInt(n)
	case Unsigned:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return wrong("must be a whole number from 0 to 18446744073709551615")
		}
		field.SetUint(n)
	case Number:
		f, err := Float32(text)
		if err != nil {
			return wrong(err.Error())
		}
		field.SetFloat(float64(f))
	case Switch:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return wrong("must be true or false")
		}
		field.SetBool(b)
	case Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return wrong(`must be a time with a unit, such as "30s" or "5m"`)
		}
		field.SetInt(int64(d))
	default:
		field.SetString(text)
	}
	return nil
}

// scalar returns a single value as the text that a flag would hold. A whole number that YAML wrote as 1e3 is whole.
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatFloat(v, 'f', -1, 64), true
		}
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case int, int64, uint64, bool:
		return fmt.Sprint(v), true
	default:
		return "", false
	}
}

// list takes one text, or a list of texts.
func list(value any) ([]string, error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case []string:
		return v, nil
	case []any:
		texts := make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("%v: item %d must be a text; put it in quotes", item, i)
			}
			texts[i] = text
		}
		return texts, nil
	default:
		return nil, fmt.Errorf("%v: must be a text or a list of texts; put it in quotes", value)
	}
}
