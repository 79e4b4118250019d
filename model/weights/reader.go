package weights

import "sync"

// Reader asks for the tensors of one rank and counts them. Its methods may be
// called from many goroutines.
type Reader struct {
	c *Checkpoint

	mu    sync.Mutex // guards the fields below
	asked map[string]struct{}
	bytes int64
}

// NewReader gives a reader with its own count over the shared mapping.
func (c *Checkpoint) NewReader() *Reader {
	return &Reader{c: c, asked: map[string]struct{}{}}
}

// Tensor is Checkpoint.Tensor, counted.
func (r *Reader) Tensor(name string, want Want) (Tensor, error) {
	t, err := r.c.Tensor(name, want)
	if err != nil {
		return Tensor{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.asked[name]; !again {
		r.asked[name] = struct{}{}
		r.bytes += int64(len(t.Data))
	}
	return t, nil
}

// Bytes is the size in the files of all tensors this reader was given, each
// counted once however often it was asked for.
func (r *Reader) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
