package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// source are the prompts of a run: a list that is known, or the lines of standard input.
type source struct {
	list  []entry         // nil with lines
	lines iter.Seq[entry] // nil with a list
}

// source returns the prompts that the flags name, for a layout of so many engines.
func (a *app) source(flags generateFlags, stdin bool, engines int) (source, error) {
	ways := 0
	for _, given := range []bool{len(flags.prompts.entries) > 0, flags.fileGiven, stdin} {
		if given {
			ways++
		}
	}
	switch {
	case ways == 0:
		return source{}, usagef("no prompt: give --prompt, --prompt-ids, --prompts-file or -")
	case ways > 1:
		return source{}, usagef("prompts come from flags (--prompt, --prompt-ids), from --prompts-file or from -: choose one of the three")
	case stdin:
		return source{lines: readLines(a.Stdin, engines, func(n int) string { return fmt.Sprintf("standard input: line %d", n) })}, nil
	case flags.fileGiven:
		entries, err := readPromptsFile(flags.file, engines)
		if err != nil {
			return source{}, usageError{err}
		}
		return source{list: entries}, nil
	default:
		return source{list: flags.prompts.entries}, nil
	}
}

// entries yields the prompts. Those of a list all come; standard input ends with ctx as well. A reader that waits for
// standard input is left behind then: it ends with the next line, the end of the input, or the process.
func (s source) entries(ctx context.Context) iter.Seq[entry] {
	if s.lines == nil {
		return slices.Values(s.list)
	}
	read := make(chan entry)
	go func() {
		defer close(read)
		for e := range s.lines {
			select {
			case read <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func(yield func(entry) bool) {
		for {
			select {
			case e, ok := <-read:
				if !ok || !yield(e) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
