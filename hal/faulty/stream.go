package faulty

import (
	"cmp"
	"context"

	"github.com/moerack/moerack/hal"
)

// stream is ordered work with errors put in. An error that was told sticks like one of the device: what comes after it does not
// reach the stream inside.
type stream struct {
	gate
	inner hal.Stream
	err   error // told, and not yet returned by Synchronize
}

// pass asks the injector and reports whether the call goes on. Calls after an error do nothing, so they are not counted and meet no
// rule.
func (s *stream) pass(op string) bool {
	if s.Err() != nil {
		return false
	}
	s.err = s.call(op)
	return s.err == nil
}

// Err returns the first error known: one of the device came before one that was told.
func (s *stream) Err() error {
	if err := s.inner.Err(); err != nil {
		return err
	}
	return s.err
}

// Synchronize waits for what reached the stream inside. It may itself be told to fail; an error of a lost device stays.
func (s *stream) Synchronize(ctx context.Context) error {
	told := s.in.call(ctx, s.name, "Synchronize")
	inner := s.inner.Synchronize(ctx)
	err := inner
	if hal.ClassOf(inner) == 0 { // nothing, or the context's end: what was told came before
		err = cmp.Or(s.err, told, inner)
	}
	s.err = nil
	if hal.ClassOf(err) == hal.DeviceLost {
		s.err = err
	}
	return err
}
