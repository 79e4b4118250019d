package weights

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Writer writes a checkpoint: tensors, in any order and piece by piece, and the files beside them. Its methods belong to one
// goroutine. It ends with Commit or Discard.
type Writer struct {
	dir    *directory
	shards []newShard
	places map[string]place
	files  []*os.File // of the shards
	beside []string   // other files, in the order they came
	bytes  int64
}

// place is where a tensor is written, and how much of it was.
type place struct {
	shard   int
	at      int64 // in the file
	size    int64
	written *int64
}

// NewWriter prepares a directory for tensors. It is refused before anything is written if the directory is not empty, unless
// to.Force says so, or has too little room for them.
func NewWriter(to Target, tensors []Entry) (*Writer, error) {
	shards, err := planShards(tensors, to.MaxShard)
	if err != nil {
		return nil, err
	}
	w := &Writer{shards: shards, places: map[string]place{}}
	total := int64(0)
	for i, s := range shards {
		total += int64(len(s.header)) + s.bytes
		w.bytes += s.bytes
		for _, e := range s.entries {
			w.places[e.name] = place{shard: i, at: int64(len(s.header)) + e.begin, size: e.end - e.begin, written: new(int64)}
		}
	}
	if w.dir, err = prepare(to, total); err != nil {
		return nil, err
	}
	for _, s := range shards {
		if err := w.begin(s); err != nil {
			return nil, w.Discard(err)
		}
	}
	return w, nil
}

// Bytes is the size of all tensors.
func (w *Writer) Bytes() int64 { return w.bytes }

// Shards is how many files of tensors there are.
func (w *Writer) Shards() int { return len(w.shards) }

// begin makes a file and writes its header.
func (w *Writer) begin(s newShard) error {
	f, err := w.dir.create(s.name)
	if err != nil {
		return err
	}
	w.files = append(w.files, f)
	if _, err := f.Write(s.header); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	return nil
}

// WriteAt writes a piece of a tensor's data, from byte at on. No byte is written twice.
func (w *Writer) WriteAt(name string, data []byte, at int64) error {
	p, ok := w.places[name]
	if !ok || at < 0 || at+int64(len(data)) > p.size {
		return fmt.Errorf("weights: tensor %q: %d bytes at %d do not fit the %d that were planned", name, len(data), at, p.size)
	}
	if _, err := w.files[p.shard].WriteAt(data, p.at+at); err != nil {
		return fmt.Errorf("weights: tensor %q: %w", name, err)
	}
	*p.written += int64(len(data))
	return nil
}

// AddFile writes a file that goes beside the tensors; it gets its name with them, in the order of the calls.
func (w *Writer) AddFile(name string, content io.Reader) error {
	f, err := w.dir.create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("weights: %s: %w", name, err)
	}
	w.beside = append(w.beside, name)
	return nil
}

// Commit gives all files their names: tensors, then their index, then the others. What fails is undone as by Discard. A tensor that
// was not written whole is an error.
func (w *Writer) Commit() error {
	if err := w.commit(); err != nil {
		return w.Discard(err)
	}
	return nil
}

func (w *Writer) commit() error {
	for name, p := range w.places {
		if *p.written != p.size {
			return fmt.Errorf("weights: tensor %q: %d of %d bytes were written", name, *p.written, p.size)
		}
	}
	for i, f := range w.files {
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("weights: %s: %w", w.shards[i].name, err)
		}
	}
	w.files = nil
	if err := w.dir.removeOld(); err != nil {
		return err
	}
	for _, s := range w.shards {
		if err := w.dir.name(s.name); err != nil {
			return err
		}
	}
	if len(w.shards) > 1 {
		if err := w.addIndex(); err != nil {
			return err
		}
	}
	for _, name := range w.beside {
		if err := w.dir.name(name); err != nil {
			return err
		}
	}
	return nil
}

// addIndex writes the index of the shards.
func (w *Writer) addIndex() error {
	text, err := index(w.shards)
	if err != nil {
		return fmt.Errorf("weights: %s: %w", indexFile, err)
	}
	f, err := w.dir.create(indexFile)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("weights: %s: %w", indexFile, err)
	}
	return w.dir.name(indexFile)
}

// Discard removes what was made, directories too, and returns cause, with what could not be removed. What began to replace a checkpoint
// does not bring it back.
func (w *Writer) Discard(cause error) error {
	for _, f := range w.files {
		_ = f.Close() // its content does not matter any more
	}
	w.files = nil
	return w.dir.undo(cause)
}
