package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/moerack/moerack/internal/readfile"
)

// maxFileSize bounds what is read as configuration; published files have a few KB.
const maxFileSize = 16 << 20

// document is one JSON object whose getters put what is wrong into the report
// and go on with a harmless value.
type document struct {
	path   string
	prefix string // of keys in faults: "rope_scaling." for a nested object
	values map[string]any
	report *report
}

// readDocument reads a JSON object. Its error names the file and, for bad JSON, line and column.
func readDocument(path string, r *report) (*document, error) {
	data, err := readfile.Regular(path, maxFileSize)
	if err != nil {
		return nil, fmt.Errorf("config: %s: cannot be read: %w", path, err)
	}
	var values map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := checkJSON(data); err != nil {
		return nil, fmt.Errorf("config: %s: %w", path, err)
	}
	if err := dec.Decode(&values); err != nil || values == nil {
		return nil, fmt.Errorf("config: %s: holds %s, want a JSON object with the model's keys", path, describeJSON(data))
	}
	return &document{path: path, values: values, report: r}, nil
}

func checkJSON(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("is empty, want a JSON object (download cut?)")
	}
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	// The offset counts the bytes read, the faulty one included.
	upTo := data[:min(int(syntax.Offset), len(data))]
	line := 1 + bytes.Count(upTo[:max(0, len(upTo)-1)], []byte("\n"))
	column := len(upTo) - 1 - bytes.LastIndexByte(upTo[:max(0, len(upTo)-1)], '\n')
	return fmt.Errorf("not JSON: line %d, column %d: %w", line, max(1, column), syntax)
}

func describeJSON(data []byte) string {
	text := bytes.TrimSpace(data)
	switch text[0] {
	case '[':
		return "a JSON list"
	case '"':
		return "a JSON string"
	default:
		return "the JSON value " + shorten(string(text))
	}
}

// text gives a value as JSON, shortened.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return shorten(string(data))
}

func shorten(s string) string {
	const limit = 80
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return s
}

func (d *document) fault(key, want string) {
	found := ""
	if v, ok := d.values[key]; ok {
		found = text(v)
	}
	d.report.fault(d.path, d.prefix+key, found, want)
}

// has reports whether the key is there with a value other than null.
func (d *document) has(key string) bool { return d.values[key] != nil }

// absent reports whether the key is not there at all, not even as null.
func (d *document) absent(key string) bool {
	_, ok := d.values[key]
	return !ok
}

// unknown is what integer gives for a faulty key; checks between keys skip it.
const unknown = -1

// integer gives a required whole number in [low, high]; 40, 40.0 and 4e1 are the same.
func (d *document) integer(key string, low, high int) int {
	if d.absent(key) {
		d.fault(key, fmt.Sprintf("missing, want a whole number from %d to %d", low, high))
		return unknown
	}
	n, ok := whole(d.values[key])
	if !ok || n < int64(low) || n > int64(high) {
		d.fault(key, fmt.Sprintf("want a whole number from %d to %d", low, high))
		return unknown
	}
	return int(n)
}

// integerOr is integer for a key that has a published default.
func (d *document) integerOr(key string, absent, low, high int) int {
	if d.absent(key) {
		return absent
	}
	return d.integer(key, low, high)
}

// number gives a required number that suits the condition; want says the condition in words.
func (d *document) number(key string, suits func(float64) bool, want string) float64 {
	if d.absent(key) {
		d.fault(key, "missing, want "+want)
		return 1
	}
	f, ok := float(d.values[key])
	if !ok || !suits(f) {
		d.fault(key, "want "+want)
		return 1
	}
	return f
}

// numberOr is number for a key that has a published default.
func (d *document) numberOr(key string, absent float64, suits func(float64) bool, want string) float64 {
	if d.absent(key) {
		return absent
	}
	return d.number(key, suits, want)
}

func (d *document) boolOr(key string, absent bool) bool {
	if d.absent(key) {
		return absent
	}
	b, ok := d.values[key].(bool)
	if !ok {
		d.fault(key, "want true or false")
	}
	return b
}

// object gives a nested object, nil when absent or null.
func (d *document) object(key string) *document {
	if !d.has(key) {
		return nil
	}
	values, ok := d.values[key].(map[string]any)
	if !ok {
		d.fault(key, "want an object or null")
		return nil
	}
	return &document{path: d.path, prefix: d.prefix + key + ".", values: values, report: d.report}
}

func whole(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func float(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func positive(f float64) bool    { return f > 0 }
func nonNegative(f float64) bool { return f >= 0 }
