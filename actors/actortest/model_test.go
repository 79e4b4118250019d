package actortest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

const vocab = 20

var limits = nn.Limits{Rows: 8, Samples: 2, Sequences: 2, ModelLen: 8, Blocks: 4, BlockSize: 4}

// known is the rendezvous of a group whose endpoints are known beforehand.
type known int

func (known) Publish(context.Context, []byte) error { return nil }
func (n known) Collect(context.Context) ([][]byte, error) {
	ends := make([][]byte, n)
	for i := range ends {
		ends[i] = fmt.Appendf(nil, "%d", i)
	}
	return ends, nil
}

// group makes models that meet in every layer, and the communicator of each.
func group(t *testing.T, size int) (models []*Model, comms []hal.Comm) {
	rack := &Rack{}
	for i := range size {
		c, err := rack.Join(t.Context(), hal.Group{Name: "ep", Epoch: 1, Rank: i, Size: size}, known(size))
		if err != nil {
			t.Fatal(err)
		}
		m := NewModel(vocab, limits)
		m.Join(nil, c)
		models, comms = append(models, m), append(comms, c)
	}
	return models, comms
}

func batch(rows int) *nn.Batch {
	b := &nn.Batch{}
	b.Pad(rows)
	return b
}

// step runs a step on a model in a goroutine.
func step(t *testing.T, m *Model, rows int, number uint64) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := m.Forward(t.Context(), batch(rows), nn.Step{Number: number, Stages: 1})
		done <- errors.Join(err, m.Share(t.Context(), nil))
	}()
	return done
}

// TestAbsentMember: the others wait in the first meeting, and Progress says so, until the absent one comes.
func TestAbsentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models, _ := group(t, 3)
		first, second := step(t, models[0], 2, 1), step(t, models[1], 2, 1)
		synctest.Wait()
		for _, m := range models[:2] {
			if p := m.Progress.Read(); !p.Running || p.Step != 1 || p.Op != (nn.Op{Name: nn.OpA2E, Layer: 0}) {
				t.Errorf("waits at %+v", p)
			}
		}
		for _, done := range []<-chan error{step(t, models[2], 2, 1), first, second} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if models[0].Progress.Read().Running {
			t.Error("the step does not end")
		}
	})
}

// TestMembersOfDifferentSteps: what would be a wrong result on a device is an error here.
func TestMembersOfDifferentSteps(t *testing.T) {
	for _, tt := range []struct {
		rows   int
		number uint64
	}{{3, 1}, {2, 2}} {
		models, _ := group(t, 2)
		for _, done := range []<-chan error{step(t, models[0], 2, 1), step(t, models[1], tt.rows, tt.number)} {
			if err := <-done; err == nil || !strings.Contains(err.Error(), "layer 0: a2e: actortest: group ep: rank ") {
				t.Errorf("with %d rows in step %d: %v", tt.rows, tt.number, err)
			}
		}
	}
}

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		models, comms := group(t, 2)
		cause := errors.New("verdict")
		waiting := step(t, models[0], 2, 1)
		synctest.Wait()
		comms[1].Abort(cause)
		comms[0].Abort(errors.New("too late"))
		for _, done := range []<-chan error{waiting, step(t, models[1], 2, 1)} {
			if err := <-done; hal.ClassOf(err) != hal.Aborted || !errors.Is(err, cause) {
				t.Errorf("aborted: %v", err)
			}
		}
		if err := <-step(t, models[0], 2, 2); hal.ClassOf(err) != hal.Aborted {
			t.Errorf("later: %v", err)
		}
	})
}
