package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// scanner reads the JSON of headers and indexes: objects of strings, numbers and
// small objects, 100,000 and more of them, for which encoding/json's tokens take
// seconds. Everything beyond that it leaves to encoding/json.
type scanner struct {
	data []byte
	at   int
}

var errEndsEarly = errors.New("the JSON ends early (download cut?)")

// next gives the next byte that is no white space without taking it, 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) bad(want string) error {
	if s.next() == 0 && s.at == len(s.data) {
		return errEndsEarly
	}
	return fmt.Errorf("byte %d is %q, want %s", s.at, s.data[s.at], want)
}

// take takes c if it comes next.
func (s *scanner) take(c byte) bool {
	if s.next() != c || s.at == len(s.data) {
		return false
	}
	s.at++
	return true
}

// object calls f for each key, with the scanner before the value, which f must take.
func (s *scanner) object(f func(key string) error) error {
	if !s.take('{') {
		return s.bad("an object")
	}
	if s.take('}') {
		return nil
	}
	for {
		key, err := s.text()
		if err != nil {
			return err
		}
		if !s.take(':') {
			return s.bad("a colon")
		}
		if err := f(key); err != nil {
			return err
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.bad("a comma or the object's end")
		}
	}
}

// text takes a string.
func (s *scanner) text() (string, error) {
	if s.next() != '"' {
		return "", s.bad("a string")
	}
	plain := true
	for end := s.at + 1; end < len(s.data); end++ {
		switch c := s.data[end]; {
		case c == '"':
			quoted := s.data[s.at : end+1]
			s.at = end + 1
			if plain {
				return string(quoted[1 : len(quoted)-1]), nil
			}
			var text string
			if err := json.Unmarshal(quoted, &text); err != nil {
				return "", fmt.Errorf("bad JSON: %w", err)
			}
			return text, nil
		case c == '\\':
			end++
			plain = false
		case c < ' ' || c >= utf8.RuneSelf:
			plain = false
		}
	}
	return "", errEndsEarly
}

// sizes takes a list of whole numbers from 0 that fit an int.
func (s *scanner) sizes() ([]int, error) {
	if !s.take('[') {
		return nil, s.bad("a list of whole numbers")
	}
	list := []int{}
	if s.take(']') {
		return list, nil
	}
	for {
		n, err := s.size()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if s.take(']') {
			return list, nil
		}
		if !s.take(',') {
			return nil, s.bad("a comma or the list's end")
		}
	}
}

func (s *scanner) size() (int, error) {
	if s.next() == 0 {
		return 0, s.bad("a number")
	}
	start, n, fits := s.at, 0, true
	const most = 1<<(bits.UintSize-1) - 1
	for ; s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9'; s.at++ {
		digit := int(s.data[s.at] - '0')
		if n > (most-digit)/10 {
			fits = false
			continue
		}
		n = n*10 + digit
	}
	digits := s.data[start:s.at]
	end := s.at < len(s.data) && strings.IndexByte(",] \t\r\n", s.data[s.at]) < 0
	if len(digits) == 0 || !fits || end || digits[0] == '0' && len(digits) > 1 {
		word := s.data[start:]
		if i := bytes.IndexAny(word, ",]"); i >= 0 {
			word = word[:i]
		}
		return 0, fmt.Errorf("%.30s is no whole number from 0 to %d", word, most)
	}
	return n, nil
}

// decode takes any value, into v as encoding/json would.
func (s *scanner) decode(v any) error {
	dec := json.NewDecoder(bytes.NewReader(s.data[s.at:]))
	err := dec.Decode(v)
	s.at += int(dec.InputOffset())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEndsEarly
	}
	return err
}

// skip takes any value and forgets it.
func (s *scanner) skip() error {
	var raw json.RawMessage
	return s.decode(&raw)
}

// end requires that nothing but white space is left.
func (s *scanner) end() error {
	if s.next(); s.at < len(s.data) {
		return fmt.Errorf("something follows the JSON object: %.20q", s.data[s.at:])
	}
	return nil
}
