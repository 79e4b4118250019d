package gateway

import (
	"context"
	"io"
	"sync"

	"github.com/moerack/moerack/actors"
)

// Stream is the client's end of a request: chunks in order, the last with a FinishReason. It buffers without limit, so a slow
// client delays nobody. Its methods may be called from any goroutine.
type Stream struct {
	cancel func(*Stream)
	gone   <-chan struct{} // closed when nobody is left who could push
	cause  func() error    // why, once gone is closed

	mu     sync.Mutex // guards the fields below
	queue  []actors.Chunk
	closed bool          // the last chunk is queued or read
	more   chan struct{} // capacity 1: something was pushed
}

// NewStream makes a stream whose Cancel calls cancel. When gone is closed and what was pushed is read, a stream that had no
// last chunk ends with FinishError and cause.
func NewStream(cancel func(*Stream), gone <-chan struct{}, cause func() error) *Stream {
	return &Stream{cancel: cancel, gone: gone, cause: cause, more: make(chan struct{}, 1)}
}

// Recv waits for the next chunk. After the last one it returns io.EOF. If ctx ends first, it returns the context's error and
// the stream is as before.
func (s *Stream) Recv(ctx context.Context) (actors.Chunk, error) {
	for {
		if c, ok, end := s.pop(); ok {
			return c, nil
		} else if end {
			return actors.Chunk{}, io.EOF
		}
		select {
		case <-s.more:
		case <-s.gone:
			s.push(actors.Chunk{Finish: actors.FinishError, Err: s.cause()})
		case <-ctx.Done():
			return actors.Chunk{}, context.Cause(ctx)
		}
	}
}

// Cancel asks for the end of the request; its last chunk then says FinishAbort, unless it ended otherwise first. It does not
// wait, and may be called at any time and often.
func (s *Stream) Cancel() { s.cancel(s) }

// push queues a chunk; after the last one it does nothing.
func (s *Stream) push(c actors.Chunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.queue = append(s.queue, c)
	s.closed = c.Finish != ""
	s.signalLocked()
}

func (s *Stream) pop() (c actors.Chunk, ok, end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		if s.closed {
			s.signalLocked() // for other readers
		}
		return c, false, s.closed
	}
	c, s.queue = s.queue[0], s.queue[1:]
	if len(s.queue) > 0 || s.closed {
		s.signalLocked()
	}
	return c, true, false
}

func (s *Stream) signalLocked() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}
