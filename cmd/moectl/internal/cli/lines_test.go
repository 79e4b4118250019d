package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func where(n int) string { return fmt.Sprintf("line %d", n) }

func TestLineReaderBoundsLines(t *testing.T) {
	// The buffer is smaller than the limit, as it is in use.
	r := lineReader{bufio.NewReaderSize(strings.NewReader("12345678901234567890\n"+strings.Repeat("x", 100)+"\r\nshort\r\n"+strings.Repeat("y", 41)), 16), 40, 100}
	for i, want := range []struct {
		line string
		err  error
	}{{"12345678901234567890", nil}, {"", errLongLine}, {"short", nil}, {"", errLongLine}, {"", io.EOF}} {
		line, err := r.next()
		if string(line) != want.line || !errors.Is(err, want.err) {
			t.Errorf("line %d: %q, %v, want %q, %v", i, line, err, want.line, want.err)
		}
	}
}

// filled reads as n blanks and a line end.
func filled(n int) io.Reader {
	const block = 1 << 20
	blanks := strings.Repeat(" ", block)
	var parts []io.Reader
	for ; n > 0; n -= block {
		parts = append(parts, strings.NewReader(blanks[:min(n, block)]))
	}
	return io.MultiReader(append(parts, strings.NewReader("\n"))...)
}

// The bound is 64 MiB with the line's end: a longer line is a fault, a blank one of that length is none, and both can be read
// past.
func TestLongestLine(t *testing.T) {
	const most = 64 << 20
	from := io.MultiReader(filled(most), filled(most-1), strings.NewReader(`{"prompt": "a"}`))
	var got []string
	for e := range readLines(from, 1, where) {
		got = append(got, fmt.Sprint(e.where, " ", e.prompt.text, " ", e.err))
	}
	if want := "[line 1  line 1: is longer than 64 MiB line 3 a <nil>]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// A text to tokenize has the same bound.
func TestLongestText(t *testing.T) {
	const most = 64 << 20
	for n, fits := range map[int]bool{most - 1: true, most: false} {
		text, err := (&app{Host: Host{Stdin: filled(n)}}).textArgument("-")
		if fits && (err != nil || len(text) != most) || !fits && (!errors.Is(err, errLongLine) || exitCode(err) != exitUsage) {
			t.Errorf("%d bytes: got %d, %v", n+1, len(text), err)
		}
	}
}

func TestReadLinesSkipsBlanksAndCountsThem(t *testing.T) {
	var got []string
	for e := range readLines(strings.NewReader("\ufeff{\"prompt\": \"a\"}\n\n  \nnonsense\n{\"prompt\": \"b\"}"), 1, where) {
		got = append(got, fmt.Sprint(e.where, " ", e.prompt.text, " ", e.err != nil))
	}
	if want := "[line 1 a false line 4  true line 5 b false]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestReadLinesEndsWithAReadError(t *testing.T) {
	from := io.MultiReader(strings.NewReader("{\"prompt\": \"a\"}\n"), iotest.ErrReader(errors.New("disk on fire")))
	var last entry
	n := 0
	for e := range readLines(from, 1, where) {
		last = e
		n++
	}
	if n != 2 || last.err == nil || last.err.Error() != "line 2: cannot be read: disk on fire" {
		t.Errorf("%d entries, the last: %v", n, last.err)
	}
}

// What has no line ends is not read for ever.
func TestEndlessLine(t *testing.T) {
	for n, want := range map[int]error{30: errLongLine, 200: errEndless} {
		r := lineReader{bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", n)), 16), 20, 100}
		if _, err := r.next(); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", n, err, want)
		}
	}
}

func TestCutReader(t *testing.T) {
	for n, fits := range map[int]bool{99: true, 100: true, 101: false} {
		data, err := io.ReadAll(&cutReader{strings.NewReader(strings.Repeat("x", n)), 100})
		if len(data) != min(n, 100) || (err == nil) != fits {
			t.Errorf("%d bytes: %d, %v", n, len(data), err)
		}
	}
}

func TestParseIDs(t *testing.T) {
	if ids, err := parseIDs(" 0, 466 700,"); err != nil || fmt.Sprint(ids) != "[0 466 700]" {
		t.Errorf("%v, %v", ids, err)
	}
	if ids, err := parseIDs(""); err != nil || ids == nil || len(ids) != 0 {
		t.Errorf("nothing: %v, %v", ids, err)
	}
	for text, want := range map[string]string{"1,x": `token 1: "x"`, "-1": `token 0: "-1"`, "2147483648": "2147483647"} {
		if _, err := parseIDs(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFaultNamesThePlaceOnEachLine(t *testing.T) {
	err := entry{where: "f:3"}.fault(errors.Join(errors.New("one"), errors.New("two")))
	if err.Error() != "f:3: one\nf:3: two" {
		t.Errorf("%v", err)
	}
}
