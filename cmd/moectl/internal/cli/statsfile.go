package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moerack/moerack/actors"
)

// statsFile is where the counters go at the end. It is opened before the model is loaded, so that a path that cannot be
// written is known at once, and keeps what it holds until there are counters.
type statsFile struct {
	file    *os.File
	created bool // by openStats
}

// openStats opens the file that --stats-file names, or creates it; without a name there is none, and write and drop do nothing.
func openStats(path string) (statsFile, error) {
	if path == "" {
		return statsFile{}, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	created := errors.Is(err, fs.ErrNotExist)
	if created {
		f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	}
	if err != nil {
		return statsFile{}, usagef("--stats-file: cannot be written: %w", err)
	}
	return statsFile{f, created}, nil
}

// checkStats refuses a stats file that is one of the run's inputs: the prompts, the settings or a file of the model.
func (g *generation) checkStats() error {
	path := g.settings.StatsFile
	stats, err := os.Stat(path)
	if is := err == nil && stats.Mode().IsRegular(); !is {
		return nil // nothing that writing could destroy; whether it can be written is another matter
	}
	refuse := func(what string) error {
		return usagef("--stats-file %q: is %s, which would be overwritten: give another file", path, what)
	}
	for _, input := range []struct{ path, what string }{{g.promptsFile, "the prompts file"}, {g.settings.File, "the settings file"}} {
		if info, err := os.Stat(input.path); err == nil && os.SameFile(info, stats) {
			return refuse(input.what)
		}
	}
	if stdin, ok := g.Stdin.(*os.File); ok && g.source.lines != nil {
		if info, err := stdin.Stat(); err == nil && os.SameFile(info, stats) {
			return refuse("standard input")
		}
	}
	files, err := os.ReadDir(g.model.dir)
	if err != nil {
		return usagef("--stats-file %q: cannot be told from the model's files: %w", path, err)
	}
	for _, file := range files {
		if info, err := os.Stat(filepath.Join(g.model.dir, file.Name())); err == nil && os.SameFile(info, stats) {
			return refuse(file.Name() + " of the model")
		}
	}
	return nil
}

// write writes the counters in place of what the file held, and closes it.
func (s statsFile) write(stats actors.Stats) error {
	if s.file == nil {
		return nil
	}
	if err := errors.Join(s.empty(), writeJSON(s.file, stats), s.file.Close()); err != nil {
		return fmt.Errorf("--stats-file: %w", err)
	}
	return nil
}

// empty takes away what a regular file holds; pipes and devices hold nothing.
func (s statsFile) empty() error {
	info, err := s.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return s.file.Truncate(0)
}

// drop closes the file for a run that has no counters, and leaves things as openStats found them.
func (s statsFile) drop() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.created {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	if err != nil {
		return fmt.Errorf("--stats-file: %w", err)
	}
	return nil
}
