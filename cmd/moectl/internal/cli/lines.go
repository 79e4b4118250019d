package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// maxLine bounds a line of prompts, in bytes: more than any model's context, less than what would take the machine down.
const maxLine = 64 << 20

// The most bytes that are read in search of the end of a line, and of a prompts file.
const (
	maxSkip = 1 << 30
	maxFile = 1 << 30
)

// errLongLine is a line past the bound. What follows it can still be read.
var errLongLine = errors.New("is longer than 64 MiB")

// errEndless ends a reading: what follows cannot be found.
var errEndless = errors.New("the line has no end within 1 GiB")

// lineReader reads lines of bounded length.
type lineReader struct {
	from  *bufio.Reader
	limit int
	skips int64 // most bytes of a line past the limit
}

// next returns the next line without its end. io.EOF comes alone, after the last line.
func (r lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		long := len(line)+len(part) > r.limit
		if !long {
			line = append(line, part...)
		}
		switch {
		case long:
			return nil, r.skip(err)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		default:
			return nil, err
		}
	}
}

// skip reads on to the end of a line that is too long; err is how its last part ended.
func (r lineReader) skip(err error) error {
	for skipped := int64(0); errors.Is(err, bufio.ErrBufferFull); {
		var part []byte
		part, err = r.from.ReadSlice('\n')
		if skipped += int64(len(part)); skipped > r.skips {
			return errEndless
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errLongLine
}

// cutReader ends a longer input with an error.
type cutReader struct {
	from io.Reader
	left int64 // bytes
}

// Read passes on what is within the bound.
func (r *cutReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		n, err := r.from.Read(make([]byte, 1))
		if n > 0 {
			err = errors.New("the file is longer than 1 GiB: give its lines on standard input")
		}
		return 0, err
	}
	n, err := r.from.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// readLines yields the prompts of from as they come; blank lines are none. where names a line by its number, from 1. A read
// error is the last entry.
func readLines(from io.Reader, engines int, where func(line int) string) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		lines := lineReader{bufio.NewReaderSize(from, 1<<16), maxLine, maxSkip}
		for n := 1; ; n++ {
			line, err := lines.next()
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte("\ufeff")) // some editors put it there
			}
			e := entry{where: where(n)}
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.Is(err, errLongLine):
				e.err = e.fault(err)
			case err != nil:
				e.err = fmt.Errorf("%s: cannot be read: %w", where(n), err)
				yield(e)
				return
			case len(bytes.TrimSpace(line)) == 0:
				continue
			default:
				var fault error
				if e.prompt, fault = parseLine(line, engines); fault != nil {
					e.err = e.fault(fault)
				}
			}
			if !yield(e) {
				return
			}
		}
	}
}

// readPromptsFile reads a whole prompts file. The error says why it could not be opened, or that it holds none; faults of
// lines are in the entries.
func readPromptsFile(path string, engines int) ([]entry, error) {
	if path == "" {
		return nil, errors.New("--prompts-file: is empty, want the name of a file of JSON lines")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--prompts-file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("--prompts-file: %s: is a directory, want a file of JSON lines", path)
	}
	var entries []entry
	for e := range readLines(&cutReader{f, maxFile}, engines, func(n int) string { return fmt.Sprintf("%s:%d", path, n) }) {
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf(`--prompts-file: %s: no prompt in it, want lines such as {"prompt": "text"}`, path)
	}
	return entries, nil
}
