package nn_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/moerack/moerack/model/nn"
)

func TestProgress(t *testing.T) {
	var p nn.Progress
	list := []nn.Op{{Name: nn.OpEmbed, Layer: -1}, {Name: nn.OpAttention, Layer: 0}}
	idle := nn.Op{Layer: -1}
	for _, tt := range []struct {
		name string
		do   func()
		want nn.Position
	}{
		{"before any step", func() {}, nn.Position{Op: idle}},
		{"end outside a step", p.End, nn.Position{Op: idle}},
		{"begin", func() { p.Begin(4, &list) }, nn.Position{Step: 4, Running: true, Index: -1, Op: idle, Moves: 1}},
		{"first op", func() { p.Enter(0) }, nn.Position{Step: 4, Running: true, Index: 0, Op: list[0], Moves: 2}},
		{"second op", func() { p.Enter(1) }, nn.Position{Step: 4, Running: true, Index: 1, Op: list[1], Moves: 3}},
		{"end", p.End, nn.Position{Step: 4, Index: 1, Op: idle, Moves: 4}},
		{"end again", p.End, nn.Position{Step: 4, Index: 1, Op: idle, Moves: 4}},
		{"next step", func() { p.Begin(5, &list) }, nn.Position{Step: 5, Running: true, Index: -1, Op: idle, Moves: 5}},
	} {
		tt.do()
		if got := p.Read(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { p.Begin(6, &list); p.Enter(0); p.End() }); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}

// TestProgressIsReadAnyTime: moves never go back for a reader beside the writer.
func TestProgressIsReadAnyTime(t *testing.T) {
	var p nn.Progress
	list := make([]nn.Op, 50)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			last := uint64(0)
			for {
				at := p.Read()
				if at.Moves < last || at.Index < -1 || at.Index >= len(list) {
					t.Errorf("read %+v after %d moves", at, last)
					return
				}
				last = at.Moves
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for step := range uint64(200) {
		p.Begin(step, &list)
		for i := range list {
			p.Enter(i)
		}
		p.End()
	}
	close(done)
	readers.Wait()
	if got := p.Read().Moves; got != 200*52 {
		t.Errorf("%d moves, want %d", got, 200*52)
	}
}

func TestOpError(t *testing.T) {
	cause := errors.New("out of memory")
	for want, e := range map[string]*nn.OpError{
		"layer 3: a2e: out of memory": {Op: nn.Op{Name: nn.OpA2E, Layer: 3}, Err: cause},
		"logits: out of memory":       {Op: nn.Op{Name: nn.OpLogits, Layer: -1}, Err: cause},
	} {
		if e.Error() != want || !errors.Is(e, cause) {
			t.Errorf("error %q, want %q with its cause", e, want)
		}
	}
}

func TestLoad(t *testing.T) {
	l := nn.NewLoad(8, 3)
	l.Add(0, 2)
	l.Add(2, 5)
	l.Add(0, 1)
	if got := l.Rows(); !slices.Equal(got, []int64{3, 0, 5}) || l.First != 8 {
		t.Errorf("experts from %d served %v, want 3, 0, 5 from 8", l.First, got)
	}
}
