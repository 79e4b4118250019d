package rank

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/model/nn"
)

// TestOneThread: a device's context lives on one OS thread, from opening it to the last step. A goroutine that is not locked to its
// thread changes it sooner or later when it comes back from a system call while others keep the processors busy.
func TestOneThread(t *testing.T) {
	busy, ended := make(chan struct{}), make(chan struct{})
	for range 4 * runtime.GOMAXPROCS(0) {
		go func() {
			for {
				select {
				case <-busy:
					ended <- struct{}{}
					return
				default:
					runtime.Gosched()
				}
			}
		}()
	}
	defer func() {
		close(busy)
		for range 4 * runtime.GOMAXPROCS(0) {
			<-ended
		}
	}()
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(syscall.Close(pipe[0]), syscall.Close(pipe[1])); err != nil {
			t.Error(err)
		}
	})
	var threads []int
	m := actortest.NewModel(vocab, limits)
	m.Before = func(context.Context, int, *nn.Batch) error {
		threads = append(threads, syscall.Gettid())
		go func() {
			for range 100 {
				runtime.Gosched()
			}
			_, _ = syscall.Write(pipe[1], []byte{1}) // the read that it ends says what went wrong
		}()
		_, err := syscall.Read(pipe[0], make([]byte, 1))
		return err
	}
	g := start(t, func(context.Context) (Model, error) {
		threads = append(threads, syscall.Gettid())
		return m, nil
	})
	g.ready()
	for n := uint64(1); n <= 200; n++ {
		g.send(step(n, []int32{1}))
		if d := await[*actors.StepDone](g); d.Err != nil {
			t.Fatal(d.Err)
		}
	}
	if len(threads) != 201 {
		t.Fatalf("%d calls, want 201", len(threads))
	}
	for i, thread := range threads {
		if thread != threads[0] {
			t.Fatalf("call %d runs on thread %d, the device was opened on %d", i, thread, threads[0])
		}
	}
}
