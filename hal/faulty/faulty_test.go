package faulty_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/hal/faulty"
	"github.com/moerack/moerack/hal/haltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformanceWithoutRules(t *testing.T) {
	in := &faulty.Injector{}
	haltest.Run(t, func() (hal.Device, error) {
		d, err := cpu.Open(cpu.Options{})
		if err != nil {
			return nil, err
		}
		return faulty.Wrap(d, in), nil
	})
	for _, op := range append(methods[hal.Ops](), "Alloc", "Join", "AllReduce", "CommClose") {
		if in.Calls("", op) == 0 || in.Ops()[op] != in.Calls("cpu:0", op) {
			t.Errorf("%s: %d calls counted, %d of the only device", op, in.Calls("", op), in.Calls("cpu:0", op))
		}
	}
}

// methods lists an interface's methods.
func methods[T any]() []string {
	var names []string
	for m := range reflect.TypeFor[T]().Methods() {
		names = append(names, m.Name)
	}
	return names
}

// wrapped is a cpu device with rules, a stream of it and a communicator of its own.
type wrapped struct {
	in  *faulty.Injector
	dev hal.Device
	st  hal.Stream
	com hal.Comm
}

func open(t *testing.T) wrapped {
	t.Helper()
	d, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := wrapped{in: &faulty.Injector{}}
	w.dev = faulty.Wrap(d, w.in)
	if w.st, err = w.dev.NewStream(); err != nil {
		t.Fatal(err)
	}
	if w.com, err = w.dev.Join(t.Context(), hal.Group{Name: "alone", Size: 1, Names: []string{"rank 0"}}, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// call calls a method with zero arguments, except contexts and the stream, and returns its error, for ops the stream's. A call
// that reached the device would say something else than what it was told.
func (w wrapped) call(t *testing.T, on any, method string) error {
	t.Helper()
	m := reflect.ValueOf(on).MethodByName(method)
	var args []reflect.Value
	for in := range m.Type().Ins() {
		switch in {
		case reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(t.Context()))
		case reflect.TypeFor[hal.Stream]():
			args = append(args, reflect.ValueOf(w.st))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	out := m.Call(args)
	if len(out) == 0 {
		return w.st.Err()
	}
	err, _ := out[len(out)-1].Interface().(error)
	return err
}

// TestEveryCallCanFail: every method of the three interfaces obeys, except those that always pass.
func TestEveryCallCanFail(t *testing.T) {
	passes := []string{"Describe", "Pulse", "Err", "Group", "Abort"}
	for on, names := range map[string][]string{"device": methods[hal.Device](), "stream": methods[hal.Stream](), "comm": methods[hal.Comm]()} {
		for _, name := range names {
			if slices.Contains(passes, name) {
				continue
			}
			t.Run(on+"/"+name, func(t *testing.T) {
				w := open(t)
				target, op := map[string]any{"device": w.dev, "stream": w.st, "comm": w.com}[on], name
				if on == "comm" && name == "Close" {
					op = "CommClose"
				}
				rule := w.in.Add(faulty.Rule{Op: op, Do: faulty.Fail(hal.Transient, 4711)})
				err := w.call(t, target, name)
				var e *hal.Error
				if !errors.As(err, &e) || e.Op != op || e.Device != "cpu:0" || e.Class != hal.Transient || e.Code != 4711 {
					t.Errorf("got %v, want a transient failure of %s with code 4711", err, op)
				}
				if rule.Fired() != 1 {
					t.Errorf("fired %d times, want 1", rule.Fired())
				}
			})
		}
	}
}

func TestWhichCalls(t *testing.T) {
	for name, c := range map[string]struct {
		rule faulty.Rule
		want []int // of five calls of Memory, those that fail
	}{
		"every":          {faulty.Rule{}, []int{1, 2, 3, 4, 5}},
		"by op":          {faulty.Rule{Op: "Memory"}, []int{1, 2, 3, 4, 5}},
		"another op":     {faulty.Rule{Op: "Alloc"}, nil},
		"by device":      {faulty.Rule{Device: "cpu:0", N: 3}, []int{3}},
		"another device": {faulty.Rule{Device: "cpu:1"}, nil},
		"predicate":      {faulty.Rule{When: func(c faulty.Call) bool { return c.Op == "Memory" && c.N%2 == 0 }}, []int{2, 4}},
		"limit":          {faulty.Rule{Limit: 2}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			c.rule.Do = faulty.Fail(hal.DeviceLost, 0)
			rule := w.in.Add(c.rule)
			var got []int
			for i := 1; i <= 5; i++ {
				if _, err := w.dev.Memory(); hal.ClassOf(err) == hal.DeviceLost {
					got = append(got, i)
				}
			}
			if !slices.Equal(got, c.want) || rule.Fired() != len(c.want) || w.in.Calls("cpu:0", "Memory") != 5 {
				t.Errorf("calls %v failed, rule fired %d times, %d calls counted; want %v and 5", got, rule.Fired(), w.in.Calls("cpu:0", "Memory"), c.want)
			}
			rule.Remove()
			if _, err := w.dev.Memory(); hal.ClassOf(err) == hal.DeviceLost {
				t.Error("a removed rule fired")
			}
		})
	}
}

func TestFirstRuleActs(t *testing.T) {
	w := open(t)
	count := w.in.Add(faulty.Rule{})
	first := w.in.Add(faulty.Rule{Do: faulty.Fail(hal.Transient, 1)})
	second := w.in.Add(faulty.Rule{Do: faulty.Fail(hal.Transient, 2)})
	var e *hal.Error
	if _, err := w.dev.Memory(); !errors.As(err, &e) || e.Code != 1 {
		t.Errorf("got %v, want the first rule's code 1", err)
	}
	if count.Fired() != 1 || first.Fired() != 1 || second.Fired() != 0 {
		t.Errorf("fired %d, %d, %d times, want 1, 1, 0", count.Fired(), first.Fired(), second.Fired())
	}
}

// TestToldErrorSticks: what follows does nothing, Synchronize returns the error once; a lost device stays lost.
func TestToldErrorSticks(t *testing.T) {
	for class, stays := range map[hal.Class]bool{hal.Transient: false, hal.DeviceLost: true} {
		w := open(t)
		x, err := w.dev.Alloc(hal.F32, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		w.in.Add(faulty.Rule{Op: "Add", Limit: 1, Do: faulty.Fail(class, 0)})
		w.st.Add(x, x, x)
		w.st.PutFloat32(x, []float32{7})
		if n := w.in.Calls("", "PutFloat32"); n != 0 {
			t.Errorf("%v: %d calls after the error were counted", class, n)
		}
		if err := w.st.Synchronize(t.Context()); hal.ClassOf(err) != class {
			t.Errorf("synchronize: %v, want class %v", err, class)
		}
		if err := w.st.Synchronize(t.Context()); (err != nil) != stays {
			t.Errorf("%v: synchronize again: %v, error wanted: %v", class, err, stays)
		}
		got := make([]float32, 1)
		w.st.GetFloat32(got, x)
		if got[0] != 0 {
			t.Errorf("%v: work after the error ran: %v", class, got)
		}
	}
}

// TestDeviceErrorComesFirst: an error of the device inside is not hidden by one that would have come later.
func TestDeviceErrorComesFirst(t *testing.T) {
	w := open(t)
	w.st.Add(hal.Tensor{}, hal.Tensor{}, hal.Tensor{})
	w.in.Add(faulty.Rule{Op: "Synchronize", Do: faulty.Fail(hal.DeviceLost, 0)})
	if err := w.st.Synchronize(t.Context()); hal.ClassOf(err) != hal.CallerFault {
		t.Errorf("got %v, want the caller's fault of Add", err)
	}
}

func TestLackAndDie(t *testing.T) {
	w := open(t)
	w.in.Add(faulty.Rule{Op: "Join", Do: faulty.Lack()})
	if _, err := w.dev.Join(t.Context(), hal.Group{Size: 1, Names: []string{"rank 0"}}, nil); hal.ClassOf(err) != hal.CallerFault {
		t.Errorf("join without the ability: %v, want a caller's fault", err)
	}
	w.in.Add(faulty.Rule{Op: "Barrier", N: 1, Do: faulty.Die()})
	defer func() {
		var d *faulty.Death
		if err, ok := recover().(error); !ok || !errors.As(err, &d) || d.Op != "Barrier" || d.N != 1 {
			t.Errorf("panicked with %v, want the death of the first Barrier", err)
		}
	}()
	w.com.Barrier(w.st)
	t.Error("Barrier returned")
}

// TestHolds: a hang and a delay hold their goroutine until they are released, by rule, by injector or by context.
func TestHolds(t *testing.T) {
	for name, c := range map[string]struct {
		do   faulty.Action
		free func(*faulty.Injector, *faulty.Armed, context.CancelFunc)
		want hal.Class // 0: the call went on
	}{
		"hang, rule":      {faulty.Hang(), func(_ *faulty.Injector, a *faulty.Armed, _ context.CancelFunc) { a.Release() }, hal.DeviceLost},
		"hang, injector":  {faulty.Hang(), func(in *faulty.Injector, _ *faulty.Armed, _ context.CancelFunc) { in.Release() }, hal.DeviceLost},
		"hang, context":   {faulty.Hang(), func(_ *faulty.Injector, _ *faulty.Armed, cancel context.CancelFunc) { cancel() }, hal.DeviceLost},
		"delay, rule":     {faulty.Delay(0), func(_ *faulty.Injector, a *faulty.Armed, _ context.CancelFunc) { a.Release() }, 0},
		"delay, injector": {faulty.Delay(0), func(in *faulty.Injector, _ *faulty.Armed, _ context.CancelFunc) { in.Release() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t)
				rule := w.in.Add(faulty.Rule{Op: "Synchronize", Do: c.do})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- w.st.Synchronize(ctx) }()
				<-rule.Hit()
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatalf("returned %v before it was released", err)
				default:
				}
				c.free(w.in, rule, cancel)
				if err := <-done; hal.ClassOf(err) != c.want {
					t.Errorf("got %v, want class %v", err, c.want)
				}
			})
		})
	}
}

func TestDelayLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.in.Add(faulty.Rule{Op: "NewStream", Do: faulty.Delay(time.Minute)})
		from := time.Now()
		if _, err := w.dev.NewStream(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(from); d != time.Minute {
			t.Errorf("held for %v, want one minute", d)
		}
		w.in.Release()
		w.in.Add(faulty.Rule{Op: "Alloc", Do: faulty.Hang()})
		if _, err := w.dev.Alloc(hal.F32, 1, 1); hal.ClassOf(err) != hal.DeviceLost {
			t.Errorf("a hang after Release: %v, want it over at once", err)
		}
	})
}
