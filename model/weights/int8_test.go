package weights

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantizeInt8ByHand(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		row   []float32
		q     []int8
		scale float32
	}{
		{[]float32{127, -127, 0, 1}, []int8{127, -127, 0, 1}, 1},
		{[]float32{0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127}, []int8{0, 2, 2, 0, -2, -2, 127}, 1}, // half to even
		{[]float32{254, 3, -5}, []int8{127, 2, -2}, 2},                                        // 1.5 and −2.5
		{[]float32{-1}, []int8{-127}, 1.0 / 127},
		{[]float32{0, float32(math.Copysign(0, -1))}, []int8{0, 0}, 0},
		{[]float32{0x1p-101, -0x1p-149}, []int8{0, 0}, 0},
		{[]float32{0x1p-100, -0x1p-100}, []int8{127, -127}, 0x1p-100 / 127},
		{[]float32{math.MaxFloat32, -math.MaxFloat32}, []int8{127, -127}, math.MaxFloat32 / 127},
		{[]float32{1, nan}, []int8{0, 0}, nan},
		{[]float32{-inf, 1}, []int8{0, 0}, nan},
		{nil, nil, 0},
	} {
		q := slices.Repeat([]byte{99}, len(tt.row))
		scale := QuantizeInt8(q, tt.row)
		if scale != tt.scale && (scale == scale || tt.scale == tt.scale) {
			t.Errorf("%v: scale %v, want %v", tt.row, scale, tt.scale)
		}
		for i, want := range tt.q {
			if int8(q[i]) != want {
				t.Errorf("%v: element %d is %d, want %d", tt.row, i, int8(q[i]), want)
			}
		}
	}
}

// TestQuantizeInt8Error: no element is off by more than half a step, the largest is ±127, and the rule is the one that it says.
func TestQuantizeInt8Error(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		row := make([]float32, 1+rnd.IntN(300))
		size := math.Ldexp(1, rnd.IntN(200)-95)
		for i := range row {
			row[i] = float32(rnd.NormFloat64() * size)
		}
		q := make([]byte, len(row))
		scale := QuantizeInt8(q, row)
		most := 0
		for i, v := range row {
			x := int8(q[i])
			most = max(most, int(x), -int(x))
			if want := math.RoundToEven(float64(float32(v * (127 / slices.Max(abs(row)))))); float64(x) != want {
				t.Fatalf("%v in steps of %v became %d, want %v", v, scale, x, want)
			}
			if off := math.Abs(float64(v) - float64(x)*float64(scale)); off > 0.50001*float64(scale) {
				t.Fatalf("%v became %d · %v, off by %v", v, x, scale, off)
			}
		}
		if most != 127 {
			t.Fatalf("the largest of %d elements became %d", len(row), most)
		}
	}
}

func abs(row []float32) []float32 {
	v := slices.Clone(row)
	for i := range v {
		v[i] = max(v[i], -v[i])
	}
	return v
}

func TestToBF16(t *testing.T) {
	for bits, want := range map[uint32]uint16{
		0x3f800000: 0x3f80, 0x3f808000: 0x3f80, 0x3f808001: 0x3f81, 0x3f818000: 0x3f82, 0x3f817fff: 0x3f81, // half to even
		0x80000000: 0x8000, 0x00000001: 0, 0x7f7fffff: 0x7f80, 0x7f800000: 0x7f80, 0xff800000: 0xff80, // what is too large is infinite
		0x7f800001: 0x7fc0, 0x7fffffff: 0x7fff, 0xffc00000: 0xffc0, // NaN
	} {
		if got := toBF16(math.Float32frombits(bits)); got != want {
			t.Errorf("%08x became %04x, want %04x", bits, got, want)
		}
	}
}

func TestWidenTables(t *testing.T) {
	for code, want := range map[int]float64{0x00: 0, 0x01: 0x1p-9, 0x07: 7 * 0x1p-9, 0x08: 0x1p-6, 0x38: 1, 0x39: 1.125, 0x7e: 448, 0xfe: -448, 0xb8: -1} {
		if got := f8e4m3[code]; float64(got) != want {
			t.Errorf("F8 %02x is %v, want %v", code, got, want)
		}
	}
	if v := f8e4m3[0x7f]; v == v {
		t.Errorf("F8 7f is %v, want NaN", v)
	}
	for half, want := range map[uint16]float64{0: 0, 1: 0x1p-24, 0x3ff: 1023 * 0x1p-24, 0x400: 0x1p-14, 0x3c00: 1, 0xc500: -5, 0x7bff: 65504, 0x7c00: math.Inf(1)} {
		if got := fromF16(half); float64(got) != want {
			t.Errorf("F16 %04x is %v, want %v", half, got, want)
		}
	}
}

func BenchmarkQuantizeInt8(b *testing.B) {
	row, q := make([]float32, 7168), make([]byte, 7168)
	for i := range row {
		row[i] = float32(i%255) - 100
	}
	b.SetBytes(int64(len(row)))
	for b.Loop() {
		QuantizeInt8(q, row)
	}
}

func BenchmarkConvert(b *testing.B) {
	const out, in = 1408, 2048
	l := Linear{Weight: Tensor{DType: BF16, Shape: []int{out, in}, Data: make([]byte, 2*out*in)}}
	for i := 0; i < len(l.Weight.Data); i += 2 { // numbers of about 1
		l.Weight.Data[i], l.Weight.Data[i+1] = byte(i*31), 0x3f+byte(i&2)<<6
	}
	v, err := l.to(Int8)
	if err != nil {
		b.Fatal(err)
	}
	data, scales := make([]byte, out*in), make([]byte, 4*out)
	b.SetBytes(2 * out * in)
	for b.Loop() {
		v.Run(0, out, data, scales)
	}
}
