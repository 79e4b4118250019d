package gateway

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moerack/moerack/actors"
)

func newStream() (*Stream, chan struct{}) {
	gone := make(chan struct{})
	return NewStream(func(*Stream) {}, gone, func() error { return errors.New("node failed") }), gone
}

func TestStreamOrderAndEnd(t *testing.T) {
	s, _ := newStream()
	for i := range 3 {
		s.push(actors.Chunk{Tokens: []int32{int32(i)}})
	}
	s.push(actors.Chunk{Finish: actors.FinishStop})
	s.push(actors.Chunk{Finish: actors.FinishError}) // after the last one
	ctx := t.Context()
	for i := range 3 {
		if c, err := s.Recv(ctx); err != nil || c.Tokens[0] != int32(i) {
			t.Errorf("chunk %d: %+v, %v", i, c, err)
		}
	}
	if c, err := s.Recv(ctx); err != nil || c.Finish != actors.FinishStop {
		t.Errorf("last chunk: %+v, %v", c, err)
	}
	for range 2 {
		if _, err := s.Recv(ctx); !errors.Is(err, io.EOF) {
			t.Errorf("after the last chunk: %v, want io.EOF", err)
		}
	}
}

func TestRecvEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStream()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Recv(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Recv: %v, want the deadline", err)
		}
		s.push(actors.Chunk{Finish: actors.FinishLength})
		if c, err := s.Recv(ctx); err != nil || c.Finish != actors.FinishLength {
			t.Errorf("what is there is given even so: %+v, %v", c, err)
		}
	})
}

func TestRecvWhenNobodyIsLeft(t *testing.T) {
	s, gone := newStream()
	s.push(actors.Chunk{Tokens: []int32{1}})
	close(gone)
	ctx := t.Context()
	if c, err := s.Recv(ctx); err != nil || len(c.Tokens) != 1 {
		t.Errorf("what was pushed: %+v, %v", c, err)
	}
	if c, err := s.Recv(ctx); err != nil || c.Finish != actors.FinishError || c.Err.Error() != "node failed" {
		t.Errorf("then: %+v, %v; want the cause", c, err)
	}
	if _, err := s.Recv(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("then: %v, want io.EOF", err)
	}
}

// TestManyReaders: every reader wakes at the end.
func TestManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStream()
		ends := make(chan int, 3)
		for range cap(ends) {
			go func() {
				n := 0
				for {
					if _, err := s.Recv(t.Context()); err != nil {
						ends <- n
						return
					}
					n++
				}
			}()
		}
		synctest.Wait()
		s.push(actors.Chunk{Tokens: []int32{1}})
		s.push(actors.Chunk{Finish: actors.FinishStop})
		sum := 0
		for range cap(ends) {
			sum += <-ends
		}
		if sum != 2 {
			t.Errorf("readers saw %d chunks, want 2", sum)
		}
	})
}
