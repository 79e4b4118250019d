package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Target says where and how a checkpoint is written.
type Target struct {
	Dir string // made if it is not there, with its parents
	// Force writes into a directory that is not empty. When the new checkpoint is complete it replaces the one that is there:
	// config.json, *.safetensors and their index are removed; other files stay, but for those of the same name.
	Force    bool
	MaxShard int64 // bytes of tensors in a file
	// Free returns the bytes that may still be written below a directory; nil, or an error: not known.
	Free func(dir string) (int64, error)
}

const (
	partial    = ".partial" // end of a file's name until all are there
	configFile = "config.json"
)

// directory is where files are made. It remembers them, to undo it all.
type directory struct {
	path  string
	old   []string // files of the checkpoint that is replaced
	dirs  []string // made, the outermost first
	files []string // made, by their names now
}

// prepare checks the target and makes its directory.
func prepare(to Target, bytes int64) (*directory, error) {
	if to.Dir == "" {
		return nil, errors.New("weights: no directory to write to")
	}
	d := &directory{path: filepath.Clean(to.Dir)}
	entries, err := os.ReadDir(d.path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("weights: the directory to write to: %w", err)
	case len(entries) > 0 && !to.Force:
		return nil, fmt.Errorf("weights: %s is not empty (it has %s): name another directory, or force it to replace the checkpoint there", d.path, entries[0].Name())
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir() || !stale(name):
		case name == configFile: // goes first: without it the rest is no model
			d.old = slices.Insert(d.old, 0, name)
		default:
			d.old = append(d.old, name)
		}
	}
	for p := d.path; ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil || filepath.Dir(p) == p {
			if err := enough(to.Free, p, bytes); err != nil {
				return nil, err
			}
			break
		}
		d.dirs = append([]string{p}, d.dirs...)
	}
	if err := os.MkdirAll(d.path, 0o777); err != nil {
		return nil, d.undo(fmt.Errorf("weights: making the directory: %w", err))
	}
	return d, nil
}

// stale reports whether a file belongs to a checkpoint that is replaced, or was left by a run that was killed.
func stale(name string) bool {
	name = strings.TrimSuffix(name, partial)
	return name == configFile || strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, indexSuffix)
}

// enough refuses to begin what cannot end.
func enough(free func(string) (int64, error), dir string, bytes int64) error {
	if free == nil {
		return nil
	}
	if n, err := free(dir); err == nil && n < bytes {
		return fmt.Errorf("weights: the checkpoint has %d bytes, below %s %d are free: make room, or name a directory on another disk", bytes, dir, n)
	}
	return nil
}

// create makes a file under its partial name.
func (d *directory) create(name string) (*os.File, error) {
	f, err := os.Create(filepath.Join(d.path, name+partial))
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	d.files = append(d.files, name+partial)
	return f, nil
}

// name gives a complete file its name.
func (d *directory) name(name string) error {
	if err := os.Rename(filepath.Join(d.path, name+partial), filepath.Join(d.path, name)); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	d.files[slices.Index(d.files, name+partial)] = name
	return nil
}

// removeOld removes the checkpoint that was there.
func (d *directory) removeOld() error {
	for _, name := range d.old {
		if slices.Contains(d.files, name) { // a leftover of this name was overwritten
			continue
		}
		if err := os.Remove(filepath.Join(d.path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("weights: removing the checkpoint that was there: %w", err)
		}
	}
	return nil
}

// undo removes what was made and returns err, with what could not be removed.
func (d *directory) undo(err error) error {
	errs := []error{err}
	for _, name := range d.files {
		errs = append(errs, os.Remove(filepath.Join(d.path, name)))
	}
	for _, dir := range slices.Backward(d.dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
