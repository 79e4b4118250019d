package weights

import (
	"errors"
	"sync"
)

// arena hands out memory that lives until it is freed as a whole. It is mapped outside the Go heap, so that the garbage collector
// neither scans it nor lets the heap grow by as much again, in large pieces, because a process may have only so many mappings.
type arena struct {
	mu     sync.Mutex // guards the fields below
	maps   [][]byte
	free   []byte // the rest of the last one
	closed bool
}

const (
	arenaPiece = 64 << 20
	arenaAlign = 64 // a cache line
)

var errArenaClosed = errors.New("the checkpoint is closed")

// take gives n zeroed bytes, aligned to a cache line.
func (a *arena) take(n int) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errArenaClosed
	}
	size := (n + arenaAlign - 1) &^ (arenaAlign - 1)
	if size > len(a.free) {
		m, err := mapMemory(max(size, arenaPiece))
		if err != nil {
			return nil, err
		}
		a.maps = append(a.maps, m)
		if len(m)-size < len(a.free) { // keep the larger rest
			return m[:n:n], nil
		}
		a.free = m
	}
	data := a.free[:n:n]
	a.free = a.free[size:]
	return data, nil
}

// close gives all memory back.
func (a *arena) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, m := range a.maps {
		errs = append(errs, unmapMemory(m))
	}
	a.maps, a.free, a.closed = nil, nil, true
	return errors.Join(errs...)
}
