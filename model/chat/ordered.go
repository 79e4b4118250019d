package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/ardanlabs/jinja"
)

const (
	maxInputBytes = 4 << 20 // of messages or of tools; a million tokens are about as much
	maxDepth      = 64      // of nested JSON
)

// object is a JSON object that keeps the order of its keys, as templates print it. A repeated key keeps its first place and
// its last value.
type object struct {
	keys []string
	vals map[string]any // nil, bool, json.Number, string, []any or *object
	text []byte         // as sent
}

func newObject() *object { return &object{vals: make(map[string]any)} }

func (o *object) set(key string, val any) {
	if _, ok := o.vals[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.vals[key] = val
}

// clone returns a shallow copy.
func (o *object) clone() *object {
	return o.without(func(string, any) bool { return false })
}

// without returns a shallow copy without the keys for which drop holds.
func (o *object) without(drop func(key string, val any) bool) *object {
	c := newObject()
	for _, key := range o.keys {
		if !drop(key, o.vals[key]) {
			c.set(key, o.vals[key])
		}
	}
	return c
}

// decode reads one JSON value of at most maxInputBytes.
func decode(data []byte) (any, error) {
	if len(data) > maxInputBytes {
		return nil, fmt.Errorf("has %d bytes, the limit is %d", len(data), maxInputBytes)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	val, err := decodeNext(d, data, 0)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = fmt.Errorf("has more after the JSON value, at byte %d", d.InputOffset())
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("JSON ends early, at byte %d", len(data))
	}
	return val, err
}

func decodeNext(d *json.Decoder, data []byte, depth int) (any, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, syntax(err, d)
	}
	switch tok := tok.(type) {
	case json.Number:
		if _, err := strconv.ParseFloat(tok.String(), 64); err != nil {
			return nil, fmt.Errorf("number %s at byte %d is out of range", tok, d.InputOffset())
		}
		return tok, nil
	case json.Delim:
		if depth == maxDepth {
			return nil, fmt.Errorf("JSON is nested more than %d deep, at byte %d", maxDepth, d.InputOffset())
		}
		if tok == '[' {
			return decodeList(d, data, depth)
		}
		return decodeObject(d, data, depth)
	}
	return tok, nil
}

func decodeList(d *json.Decoder, data []byte, depth int) (any, error) {
	list := []any{}
	for d.More() {
		val, err := decodeNext(d, data, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, val)
	}
	_, err := d.Token()
	return list, syntax(err, d)
}

func decodeObject(d *json.Decoder, data []byte, depth int) (any, error) {
	o := newObject()
	start := d.InputOffset() - 1
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, syntax(err, d)
		}
		val, err := decodeNext(d, data, depth+1)
		if err != nil {
			return nil, err
		}
		o.set(key.(string), val) // the decoder lets only strings be keys
	}
	_, err := d.Token()
	o.text = data[start:d.InputOffset()]
	return o, syntax(err, d)
}

// syntax adds the place to the decoder's errors.
func syntax(err error, d *json.Decoder) error {
	if e := (*json.SyntaxError)(nil); errors.As(err, &e) {
		return fmt.Errorf("JSON at byte %d: %w", d.InputOffset(), err)
	}
	return err
}

// toValue turns decoded JSON into a value of the template engine; each call makes new ones, since templates may change them.
func toValue(val any) jinja.Value {
	switch val := val.(type) {
	case bool:
		return jinja.NewBool(val)
	case json.Number:
		if n, err := val.Int64(); err == nil {
			return jinja.NewInt(n)
		}
		f, _ := val.Float64() // range was checked when it was read
		return jinja.NewFloat(f)
	case string:
		return jinja.NewString(val)
	case []any:
		items := make([]jinja.Value, len(val))
		for i := range val {
			items[i] = toValue(val[i])
		}
		return jinja.NewList(items)
	case *object:
		dict := jinja.NewDict()
		for _, key := range val.keys {
			dict.AsDict().Set(key, toValue(val.vals[key]))
		}
		return dict
	}
	return jinja.None()
}

// kindOf names the JSON kind of a decoded value for messages to people.
func kindOf(val any) string {
	switch val.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}
