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

// errLongLine is a line past the bound. What follows it can still be read.
var errLongLine = errors.New("is longer than 64 MiB")

// lineReader reads lines of bounded length.
type lineReader struct {
	from  *bufio.Reader
	limit int
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
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.from.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errLongLine
}

// readLines yields the prompts of from as they come; blank lines are none. where names a line by its number, from 1. A read
// error is the last entry.
func readLines(from io.Reader, where func(line int) string) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		lines := lineReader{bufio.NewReaderSize(from, 1<<16), maxLine}
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
				if e.prompt, fault = parseLine(line); fault != nil {
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
func readPromptsFile(path string) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--prompts-file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("--prompts-file: %s: is a directory, want a file of JSON lines", path)
	}
	var entries []entry
	for e := range readLines(f, func(n int) string { return fmt.Sprintf("%s:%d", path, n) }) {
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf(`--prompts-file: %s: no prompt in it, want lines such as {"prompt": "text"}`, path)
	}
	return entries, nil
}
