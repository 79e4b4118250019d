package weights_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
)

func TestScanNonFinite(t *testing.T) {
	tensor := func(name, dtype string, count int, data []byte) weightstest.Tensor {
		return weightstest.Tensor{Name: name, DType: dtype, Shape: []int{count}, Data: data}
	}
	f64 := func(values ...float64) (data []byte) {
		for _, v := range values {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
		}
		return data
	}
	c := mustOpen(t, write(t,
		f32("fine", 0, -1, math.MaxFloat32, math.SmallestNonzeroFloat32),
		f32("f32", 1, nan, -inf, inf, 2),
		tensor("bf16", "BF16", 5, weightstest.BF16(1, 2, -1, 3, inf)),
		tensor("f16", "F16", 3, []byte{0xff, 0x7b, 0x00, 0xfc, 0x01, 0x7c}), // 65504, -Inf, NaN
		tensor("f64", "F64", 2, f64(1, math.NaN())),
		tensor("e4m3", "F8_E4M3", 11, []byte{0x7e, 0xfe, 0x78, 0, 0x80, 1, 2, 3, 0x7f, 4, 0xff}), // 0x7e is 448, the largest
		tensor("e5m2", "F8_E5M2", 3, []byte{0x7b, 0x7c, 0xfd}),
		tensor("ints", "I32", 1, []byte{0xff, 0xff, 0xff, 0xff}),
		tensor("empty", "F32", 0, nil),
	))
	scan, err := c.ScanNonFinite(t.Context())
	do(t, err)
	const file = "model.safetensors"
	want := []weights.NonFinite{
		{Name: "f32", File: file, DType: weights.F32, NaN: 1, Inf: 2, First: 1},
		{Name: "bf16", File: file, DType: weights.BF16, Inf: 1, First: 4},
		{Name: "f16", File: file, DType: weights.F16, NaN: 1, Inf: 1, First: 1},
		{Name: "f64", File: file, DType: weights.F64, NaN: 1, First: 1},
		{Name: "e4m3", File: file, DType: weights.F8E4M3, NaN: 2, First: 8},
		{Name: "e5m2", File: file, DType: weights.F8E5M2, NaN: 1, Inf: 1, First: 1},
	}
	// "empty" sorts before what follows at its offset; it is read and has nothing.
	if !reflect.DeepEqual(scan.NonFinite, want) {
		t.Errorf("found %+v\nwant  %+v", scan.NonFinite, want)
	}
	if scan.Tensors != 8 || scan.Bytes != 16+20+10+6+16+11+3 {
		t.Errorf("read %d tensors with %d bytes", scan.Tensors, scan.Bytes)
	}
	if unused := c.Unused(0); len(unused) != 9 {
		t.Errorf("a scan marked tensors as asked for: %q left", unused)
	}
}

// Random bits, compared with the definition of each format, over a chunk's edge.
func TestScanAgreesWithDefinition(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const count = 1<<19 + 1237
	var bf16, f32, e4m3 []byte
	want := map[string]*weights.NonFinite{"bf16": {First: -1}, "f32": {First: -1}, "e4m3": {First: -1}}
	note := func(name string, i int, v float32) {
		w := want[name]
		isNaN, isInf := v != v, math.IsInf(float64(v), 0)
		if isNaN {
			w.NaN++
		}
		if isInf {
			w.Inf++
		}
		if (isNaN || isInf) && w.First < 0 {
			w.First = int64(i)
		}
	}
	for i := range count {
		// Large exponents only, so that one in a few hundred is not finite.
		bits := random.Uint32() | 0x7000_0000
		if random.IntN(2) == 0 {
			bits &= 0xffff_0000
		}
		f32 = binary.LittleEndian.AppendUint32(f32, bits)
		note("f32", i, math.Float32frombits(bits))
		bf16 = binary.LittleEndian.AppendUint16(bf16, uint16(bits>>16))
		note("bf16", i, math.Float32frombits(bits&0xffff_0000))
		e4m3 = append(e4m3, byte(bits))
		if byte(bits)&0x7f == 0x7f {
			note("e4m3", i, nan)
		}
	}
	shape := []int{count}
	c := mustOpen(t, write(t,
		weightstest.Tensor{Name: "f32", DType: "F32", Shape: shape, Data: f32},
		weightstest.Tensor{Name: "bf16", DType: "BF16", Shape: shape, Data: bf16},
		weightstest.Tensor{Name: "e4m3", DType: "F8_E4M3", Shape: shape, Data: e4m3}))
	scan, err := c.ScanNonFinite(t.Context())
	do(t, err)
	if len(scan.NonFinite) != 3 {
		t.Fatalf("found %+v", scan.NonFinite)
	}
	for _, got := range scan.NonFinite {
		if w := want[got.Name]; got.NaN != w.NaN || got.Inf != w.Inf || got.First != w.First {
			t.Errorf("%s: %d NaN, %d Inf, first %d; want %d, %d, %d", got.Name, got.NaN, got.Inf, got.First, w.NaN, w.Inf, w.First)
		}
	}
}

func TestScanStops(t *testing.T) {
	c := mustOpen(t, write(t, f32("x", nan)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	scan, err := c.ScanNonFinite(ctx)
	mustFail(t, err, `scan stopped at tensor "x"`)
	if !errors.Is(err, context.Canceled) || scan.Tensors != 0 {
		t.Errorf("%v after %d tensors", err, scan.Tensors)
	}
}
