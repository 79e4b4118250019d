package haltest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/moerack/moerack/hal"
)

// name is what messages of the suite call a rank.
func name(rank int) string { return fmt.Sprintf("rank %d of the suite", rank) }

func group(label string, epoch uint64, rank, size int) hal.Group {
	g := hal.Group{Name: label, Epoch: epoch, Rank: rank, Size: size}
	for r := range size {
		g.Names = append(g.Names, name(r))
	}
	return g
}

// mate is one rank of a crew: a device of its own and the communicator of the crew.
type mate struct {
	*rig
	hal.Comm
	rank, size int
	crew       *crew
}

// crew is what the ranks of a test share.
type crew struct {
	mu     sync.Mutex
	points map[string]*MeetingPoint
}

var errLeft = errors.New("a rank of the test ended early")

// together runs f as each of size ranks, on a thread of its own, and waits for all.
func together(t *testing.T, open func() (hal.Device, error), size int, f func(*mate)) {
	t.Helper()
	c := &crew{points: map[string]*MeetingPoint{}}
	var all sync.WaitGroup
	for rank := range size {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			dev, err := open()
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			m := &mate{rig: rigOn(t, dev), rank: rank, size: size, crew: c}
			defer func() {
				if err := dev.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			m.Comm = m.join("crew", 1)
			if m.Comm == nil {
				return
			}
			done := false
			defer func() {
				if !done {
					m.Abort(errLeft) // a failed check ends this goroutine; the others must not wait for it
				}
				if err := m.Close(); err != nil {
					t.Errorf("close of a communicator: %v", err)
				}
			}()
			f(m)
			done = true
		})
	}
	all.Wait()
}

// join makes the mate a member of one more group of the whole crew, nil after an error.
func (m *mate) join(label string, epoch uint64) hal.Comm {
	key := fmt.Sprint(label, epoch)
	m.crew.mu.Lock()
	p := m.crew.points[key]
	if p == nil {
		p = NewMeetingPoint(m.size)
		m.crew.points[key] = p
	}
	m.crew.mu.Unlock()
	c, err := m.dev.Join(m.Context(), group(label, epoch, m.rank, m.size), p.Door(m.rank))
	if err != nil {
		m.Errorf("%s: join: %v", name(m.rank), err)
		return nil
	}
	return c
}

// take returns the stream's error and makes the stream usable again.
func (m *mate) take() error { return m.st.Synchronize(m.Context()) }

// expect demands an error of a class that contains all the words.
func (m *mate) expect(what string, class hal.Class, words ...string) {
	m.Helper()
	err := m.take()
	if hal.ClassOf(err) != class {
		m.Errorf("%s: %s: %v, want class %v", name(m.rank), what, err, class)
		return
	}
	m.says(err, words...)
}

// says demands words of an error.
func (r *rig) says(err error, words ...string) {
	r.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			r.Errorf("error %v, want it to say %q", err, w)
		}
	}
}

// strided returns a view with gaps around its rows and columns, and the whole, which holds -1 outside the view.
func (m *mate) strided(d hal.DType, rows, cols int) (view, whole hal.Tensor) {
	whole = m.alloc(d, rows+2, cols+5)
	m.fill(whole, -1)
	return whole.Slice(1, rows+1).Columns(2, cols+2), whole
}

func (m *mate) fill(t hal.Tensor, v float32) {
	n := t.Rows * t.Cols
	if t.DType == hal.I32 {
		ints := make([]int32, n)
		for i := range ints {
			ints[i] = int32(v)
		}
		m.st.PutInt32(t, ints)
		return
	}
	floats := make([]float32, n)
	for i := range floats {
		floats[i] = v
	}
	m.st.PutFloat32(t, floats)
}
