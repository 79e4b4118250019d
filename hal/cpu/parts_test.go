package cpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/haltest"
)

// TestSizesOfParts: every operation computes the same however it is cut, as finely as can be or not at all, and by however many threads.
func TestSizesOfParts(t *testing.T) {
	for _, threads := range []int{1, 3} {
		for _, size := range []int{1, 300, mostPart} {
			t.Run(fmt.Sprintf("%d threads, parts of %d", threads, size), func(t *testing.T) {
				haltest.Run(t, func() (hal.Device, error) {
					dev, err := Open(Options{Threads: threads})
					if d, ok := dev.(*device); ok {
						d.pace.least, d.pace.most = size, size
					}
					return dev, err
				})
			})
		}
	}
}

// TestPace: parts take about partTime, whatever a multiplication costs, and a single slow part changes little.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		part := func(nanoseconds float64) time.Duration {
			n := p.part(linear)
			d := time.Duration(float64(n) * nanoseconds)
			start := p.start(n)
			<-time.After(d)
			p.took(linear, n, start)
			return d
		}
		for _, cost := range []float64{1, 0.02, 4, 0.3} {
			var last time.Duration
			for range 30 {
				last = part(cost)
			}
			if last < partTime*9/10 || last > partTime*11/10 {
				t.Errorf("at %v ns a part takes %v, want about %v", cost, last, partTime)
			}
		}
		part(100)
		if d := part(0.3); d < partTime/2 {
			t.Errorf("after an interruption a part takes %v, want more than half of %v", d, partTime)
		}
		for range 30 {
			part(1000)
		}
		if n := p.part(linear); n != leastPart {
			t.Errorf("on a host that stands still a part is %d multiplications, want %d", n, leastPart)
		}
		for range 60 {
			part(0.00001)
		}
		if n := p.part(linear); n != mostPart {
			t.Errorf("on a host without equal a part is %d multiplications, want %d", n, mostPart)
		}
		if n := p.part(heads); n != leastPart {
			t.Errorf("another kernel's part is %d multiplications, want %d as at first", n, leastPart)
		}
	})
}

// TestPartsChangeNoBit: operations give the bits of the whole in whatever parts and on however many threads, and pulse after each part.
func TestPartsChangeNoBit(t *testing.T) {
	const rows, size, blocks, seed = 37, 64, 5, 3
	t.Logf("seed %d", seed)
	run := func(part, threads int) (results []float32, pulses int) {
		r := rand.New(rand.NewPCG(seed, 0))
		dev, err := Open(Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		p := &dev.(*device).pace
		p.least, p.most = part, part
		st, err := dev.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		alloc := func(d hal.DType, rows, cols int) hal.Tensor {
			x, err := dev.Alloc(d, rows, cols)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		random := func(rows, cols int) hal.Tensor {
			x, v := alloc(hal.F32, rows, cols), make([]float32, rows*cols)
			for i := range v {
				v[i] = float32(r.NormFloat64())
			}
			st.PutFloat32(x, v)
			return x
		}
		x, y, mixed := random(rows, size), random(rows, size), random(rows, 4*8)
		w, v := hal.Weight{Data: random(size, size)}, hal.Weight{Data: random(size, size)}
		seqs, positions, table := alloc(hal.I32, 1, rows), alloc(hal.I32, 1, rows), alloc(hal.I32, 1, blocks)
		at := make([]int32, rows)
		for i := range at {
			at[i] = int32(i)
		}
		st.PutInt32(positions, at)
		st.PutInt32(table, []int32{3, 0, 4, 1, 2})
		dev.Pulse(func(bool) error {
			pulses++
			return nil
		})
		for _, op := range []func(){
			func() { st.MatMul(y, x, w) },
			func() { st.SwiGLU(y, x, w, v) },
			func() {
				st.HeadMatMul(y, x, w, hal.HeadMatMul{Heads: 1, Rows: size, To: size, InStride: size, OutStride: size})
			},
			func() {
				a := hal.MLAAttention{Heads: 4, Latent: 8, Rope: 8, BlockSize: 8, Scale: 1}
				st.MLAAttention(mixed, x, random(8*blocks, 16), table, seqs, positions, a)
			},
		} {
			op()
			for _, out := range []hal.Tensor{y, mixed} {
				got := make([]float32, out.Rows*out.Cols)
				st.GetFloat32(got, out)
				results = append(results, got...)
			}
		}
		if err := st.Synchronize(t.Context()); err != nil {
			t.Fatal(err)
		}
		return results, pulses
	}
	want, pulses := run(mostPart, 1)
	if pulses != 4 {
		t.Errorf("%d pulses in four short operations, want 4", pulses)
	}
	for part, least := range map[int]int{1: 2 * (size + rows), 9000: 4 * 4, 50000: 4 + 4} {
		got, pulses := run(part, 1)
		if !slices.Equal(got, want) {
			t.Errorf("parts of %d differ from the whole", part)
		}
		for _, threads := range []int{2, 5} {
			if got, _ := run(part, threads); !slices.Equal(got, want) {
				t.Errorf("parts of %d on %d threads differ from the whole", part, threads)
			}
		}
		if pulses < least {
			t.Errorf("%d pulses in parts of %d, want at least %d", pulses, part, least)
		}
	}
}

// TestUnwantedWork: the part that runs is the last one, of the operation and of the stream.
func TestUnwantedWork(t *testing.T) {
	ranks := joined(t, 2)
	dev, st := ranks[0].dev.(*device), ranks[0].st
	dev.pace.least, dev.pace.most = 1, 1
	x, err := dev.Alloc(hal.F32, 10, 10)
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for what, c := range map[string]struct {
		at   func() error // in the third part
		want string
	}{
		"unwanted": {func() error { return errCause }, "cpu:0: MatMul: the work is not wanted any more: the test wants it so [aborted]"},
		"aborted": {func() error {
			ranks[1].c.Abort(errCause)
			return nil
		}, "cpu:0: MatMul: group ffn epoch 3: aborted: the test wants it so [aborted]"},
	} {
		parts = 0
		dev.Pulse(func(bool) error {
			if parts++; parts == 3 {
				return c.at()
			}
			return nil
		})
		st.MatMul(x, x, hal.Weight{Data: x})
		st.MatMul(x, x, hal.Weight{Data: x})
		if err := st.Synchronize(t.Context()); err == nil || err.Error() != c.want || !errors.Is(err, errCause) || parts != 3 {
			t.Errorf("%s: after %d parts: %v, want three and\n%s", what, parts, err, c.want)
		}
		if what == "aborted" {
			if err := ranks[0].c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		st.MatMul(x, x, hal.Weight{Data: x})
		if err := st.Synchronize(t.Context()); err != nil {
			t.Errorf("%s: afterwards: %v", what, err)
		}
		dev.Pulse(nil)
	}
}
