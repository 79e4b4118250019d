package haltest

import (
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
)

func testDescribe(r *rig) {
	d := r.dev.Describe()
	if d.Name == "" || d.Backend == "" || d.Model == "" || d.Cores < 1 || len(d.Kernels) == 0 {
		r.Errorf("incomplete description %+v", d)
	}
	for _, k := range d.Kernels {
		if k.Op == "" || k.Impl == "" || k.Why == "" {
			r.Errorf("incomplete kernel %+v", k)
		}
	}
	m, err := r.dev.Memory()
	if err == nil && (m.Free <= 0 || m.Total < m.Free) {
		r.Errorf("memory %+v", m)
	}
}

func testMemory(r *rig) {
	a := r.alloc(hal.F32, 3, 5)
	if a.Rows != 3 || a.Cols != 5 || a.Stride != 5 || a.DType != hal.F32 || a.Buf.Bytes() != 60 {
		r.Errorf("alloc (3, 5): %+v, %d bytes", a, a.Buf.Bytes())
	}
	if v := r.floats(a); slices.Max(v) != 0 || slices.Min(v) != 0 {
		r.Errorf("fresh memory holds %v, want zeros", v)
	}
	v := r.random(15)
	r.st.PutFloat32(a, v)
	if got := r.floats(a); !slices.Equal(got, v) {
		r.Errorf("put and get: %v, want %v", got, v)
	}
	view := a.Slice(1, 3).Columns(2, 4) // rows 1, 2, columns 2, 3
	if got, want := r.floats(view), []float32{v[7], v[8], v[12], v[13]}; !slices.Equal(got, want) {
		r.Errorf("view: %v, want %v", got, want)
	}
	r.st.PutFloat32(view, []float32{1, 2, 3, 4})
	copy(v[7:], []float32{1, 2})
	copy(v[12:], []float32{3, 4})
	if got := r.floats(a); !slices.Equal(got, v) {
		r.Errorf("put through a view: %v, want %v", got, v)
	}
	i := r.i32(2, 1, -2, math.MaxInt32, math.MinInt32)
	if got, want := r.ints(i.Slice(1, 2)), []int32{math.MaxInt32, math.MinInt32}; !slices.Equal(got, want) {
		r.Errorf("integers: %v, want %v", got, want)
	}
	for _, bad := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {math.MaxInt / 2, 3}} {
		if _, err := r.dev.Alloc(hal.F32, bad[0], bad[1]); hal.ClassOf(err) != hal.CallerFault {
			r.Errorf("alloc %v: %v, want a caller's fault", bad, err)
		}
	}
}

func testImport(r *rig) {
	if _, err := r.dev.Import(hal.BF16, 2, 3, make([]byte, 11)); hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("11 bytes for 6 BF16: %v, want a caller's fault", err)
	}
	if _, err := r.dev.Import(hal.DType(0), 1, 1, make([]byte, 4)); hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("no type: %v, want a caller's fault", err)
	}
}

func testStickyErrors(r *rig) {
	good, bad := r.f32(1, 1, 2), r.alloc(hal.F32, 1, 3)
	r.st.Add(good, good, bad)
	r.st.PutFloat32(good, []float32{7, 7})
	if r.st.Err() == nil && r.st.Synchronize(r.Context()) == nil {
		r.Fatal("adding two shapes raised no error")
	} else if r.st.Err() != nil {
		if err := r.st.Synchronize(r.Context()); hal.ClassOf(err) != hal.CallerFault {
			r.Fatalf("synchronize: %v, want a caller's fault", err)
		}
	}
	if err := r.st.Synchronize(r.Context()); err != nil {
		r.Fatalf("the error was reported twice: %v", err)
	}
	if got, want := r.floats(good), []float32{1, 2}; !slices.Equal(got, want) {
		r.Errorf("work after an error ran: %v, want %v", got, want)
	}
}

func testLifetime(r *rig) {
	a, b := r.f32(1, 1), r.f32(1, 2)
	r.sync()
	a.Buf.Free()
	a.Buf.Free()
	r.st.Add(b, b, a)
	if err := r.st.Synchronize(r.Context()); hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("use of a freed buffer: %v, want a caller's fault", err)
	}
	for range 2 {
		if err := r.dev.Close(); err != nil {
			r.Errorf("close: %v", err)
		}
	}
	if _, err := r.dev.Alloc(hal.F32, 1, 1); hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("alloc on a closed device: %v, want a caller's fault", err)
	}
	if _, err := r.dev.NewStream(); hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("stream on a closed device: %v, want a caller's fault", err)
	}
	r.st.Add(b, b, b)
	if err := r.st.Synchronize(r.Context()); hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("work on a closed device: %v, want a caller's fault", err)
	}
}

func testForeign(r, other *rig) {
	a, b := r.f32(1, 1), other.f32(1, 1)
	r.st.Add(a, a, b)
	if err := r.st.Synchronize(r.Context()); hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("a buffer of another device: %v, want a caller's fault", err)
	}
}
