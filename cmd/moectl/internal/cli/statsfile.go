package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/moerack/moerack/actors"
)

// statsFile is where the counters go at the end. It is opened before the model is loaded, so that a path that cannot be
// written is known at once.
type statsFile struct{ file *os.File }

// openStats opens the file that --stats-file names and empties it; without a name there is none, and write does nothing.
func openStats(path string) (statsFile, error) {
	if path == "" {
		return statsFile{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return statsFile{}, usagef("--stats-file: cannot be written: %w", err)
	}
	return statsFile{f}, nil
}

// write writes the counters and closes the file.
func (s statsFile) write(stats actors.Stats) error {
	if s.file == nil {
		return nil
	}
	// A node that never started has neither; the keys and their types are there all the same.
	if stats.Engines == nil {
		stats.Engines = []actors.EngineStats{}
	}
	if stats.Ranks == nil {
		stats.Ranks = []actors.RankStats{}
	}
	if err := errors.Join(writeJSON(s.file, stats), s.file.Close()); err != nil {
		return fmt.Errorf("--stats-file: %w", err)
	}
	return nil
}
