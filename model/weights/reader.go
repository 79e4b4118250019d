package weights

import "sync"

// Reader asks for the tensors of one rank, or parts of them, and counts them. Its
// methods may be called from many goroutines.
type Reader struct {
	c    *Checkpoint
	form Form

	mu    sync.Mutex // guards the fields below
	asked map[request]struct{}
	bytes int64
}

// request is what is counted once: a tensor, or a part of one, in one form.
type request struct {
	name  string
	form  Form
	heads Heads
	part  part
}

// NewReader gives a reader, with its own count over the shared mapping, for a model that is run as stored.
func (c *Checkpoint) NewReader() *Reader { return c.NewReaderFor(Stored) }

// NewReaderFor gives a reader for a model whose linear weights are wanted in a form.
func (c *Checkpoint) NewReaderFor(f Form) *Reader {
	return &Reader{c: c, form: f, asked: map[request]struct{}{}}
}

// Form is what the reader was made for. Which matrices have it is the network's matter: each request says its own.
func (r *Reader) Form() Form { return r.form }

// Tensor is Checkpoint.Tensor, counted.
func (r *Reader) Tensor(name string, want Want) (Tensor, error) {
	t, err := r.c.Tensor(name, want)
	if err != nil {
		return Tensor{}, err
	}
	r.count(request{name: name}, len(t.Data))
	return t, nil
}

func (r *Reader) count(q request, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.asked[q]; !again {
		r.asked[q] = struct{}{}
		r.bytes += int64(bytes)
	}
}

// Bytes is the size of everything this reader was given, in the form it got it: each tensor,
// and each part of one, counted once however often it was asked for. Different
// parts of a tensor count each, also where they overlap. A part of a matrix with
// scales counts those of the blocks it touches.
func (r *Reader) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
