package haltest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moerack/moerack/hal"
)

// rig is an open device with a stream, and random numbers from a fixed seed. Its helpers end the test on errors.
type rig struct {
	*testing.T
	dev  hal.Device
	st   hal.Stream
	rand *rand.Rand
}

func newRig(t *testing.T, open func() (hal.Device, error)) *rig {
	t.Helper()
	dev, err := open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return rigOn(t, dev)
}

// rigOn is a rig whose device the caller closes.
func rigOn(t *testing.T, dev hal.Device) *rig {
	t.Helper()
	st, err := dev.NewStream()
	if err != nil {
		t.Fatalf("new stream: %v", err)
	}
	return &rig{T: t, dev: dev, st: st, rand: rand.New(rand.NewPCG(7, 11))}
}

func (r *rig) sync() {
	r.Helper()
	if err := r.st.Synchronize(r.Context()); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) alloc(d hal.DType, rows, cols int) hal.Tensor {
	r.Helper()
	t, err := r.dev.Alloc(d, rows, cols)
	if err != nil {
		r.Fatal(err)
	}
	return t
}

// f32 uploads values. // (rows, len(v)/rows)
func (r *rig) f32(rows int, v ...float32) hal.Tensor {
	r.Helper()
	t := r.alloc(hal.F32, rows, len(v)/rows)
	r.st.PutFloat32(t, v)
	return t
}

// i32 uploads values. // (rows, len(v)/rows)
func (r *rig) i32(rows int, v ...int32) hal.Tensor {
	r.Helper()
	t := r.alloc(hal.I32, rows, len(v)/rows)
	r.st.PutInt32(t, v)
	return t
}

// random returns values around 0 with deviation 1.
func (r *rig) random(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.rand.NormFloat64())
	}
	return v
}

// weight imports values as BF16 and returns what BF16 made of them. // (out, in)
func (r *rig) weight(out, in int) (hal.Weight, []float32) {
	r.Helper()
	v := r.random(out * in)
	data := make([]byte, 2*len(v))
	for i := range v {
		bits := math.Float32bits(v[i]) >> 16
		binary.LittleEndian.PutUint16(data[2*i:], uint16(bits))
		v[i] = math.Float32frombits(bits << 16)
	}
	t, err := r.dev.Import(hal.BF16, out, in, data)
	if err != nil {
		r.Fatal(err)
	}
	return hal.Weight{Data: t}, v
}

func (r *rig) floats(t hal.Tensor) []float32 {
	r.Helper()
	v := make([]float32, t.Rows*t.Cols)
	r.st.GetFloat32(v, t)
	r.sync()
	return v
}

func (r *rig) ints(t hal.Tensor) []int32 {
	r.Helper()
	v := make([]int32, t.Rows*t.Cols)
	r.st.GetInt32(v, t)
	r.sync()
	return v
}

// near compares with a tolerance relative to 1 + the wanted value.
func (r *rig) near(name string, got []float32, want []float64, tol float64) {
	r.Helper()
	if len(got) != len(want) {
		r.Fatalf("%s: %d values, want %d", name, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= tol*(1+math.Abs(want[i]))) {
			r.Fatalf("%s: element %d is %g, want %g", name, i, got[i], want[i])
		}
	}
}

// mul is x · wᵀ in float64. // x (t, in), w (out, in) -> (t, out)
func mul(x, w []float32, in int) []float64 {
	var y []float64
	for t := 0; t < len(x); t += in {
		for o := 0; o < len(w); o += in {
			s := 0.0
			for i := range in {
				s += float64(x[t+i]) * float64(w[o+i])
			}
			y = append(y, s)
		}
	}
	return y
}
