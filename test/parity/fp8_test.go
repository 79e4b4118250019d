package parity_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights/weightstest"
	"github.com/moerack/moerack/test/rig"
	"github.com/moerack/moerack/topology"
)

var nan = float32(math.NaN())

// fp8Linear are the matrices that the published layout holds as FP8 (test/models/recipe/fp8.py).
var fp8Linear = []string{"q_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

// TestFP8TensorParallel: slices of an FP8 matrix keep the scales of the whole one's blocks, which the heads and widths of this model
// cut in the middle. TP 2 differs from TP 1 by the order of float32 sums alone.
func TestFP8TensorParallel(t *testing.T) {
	if rig.Racing() {
		t.Skip("a larger model; the race detector has the smallest alone")
	}
	dir := copyModel(t, "tiny-v2lite", quantised)
	var want []float32
	for _, l := range []topology.Layout{
		{DataParallel: 1, TensorParallel: 1},
		{DataParallel: 1, TensorParallel: 2},
		{DataParallel: 1, TensorParallel: 2, ExpertParallel: true},
	} {
		k := rig.LoadRack(t, rig.RackOptions{Dir: dir, Layout: l})
		b := &nn.Batch{}
		r := k.Engine(0)
		r.Feed(b, r.Sequence(120), tokens(120), true)
		got := k.Step([]*nn.Batch{b})[0].Logits
		if want == nil {
			want = got
			continue
		}
		worst := compare(t, "logits", got, want, logitTol)
		t.Logf("%+v: worst difference %.2g", l, worst)
	}
}

// TestQuantised holds the rule to a checkpoint that was quantised by the published one: tiny-v3-fp8 has the weights of tiny-v3.
func TestQuantised(t *testing.T) {
	from, to := open(t, "tiny-v3"), open(t, "tiny-v3-fp8")
	matrices := 0
	for _, n := range from.Names() {
		w := quantised(tensor(t, from, n))
		if len(w) == 1 {
			continue
		}
		matrices++
		for _, got := range w {
			want := tensor(t, to, got.Name)
			if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("%s differs from tiny-v3-fp8", got.Name)
			}
		}
	}
	if matrices < 100 {
		t.Errorf("%d matrices were compared, want those of 4 layers with 16 experts", matrices)
	}
}

// quantised turns a BF16 matrix of fp8Linear into FP8 by the rule of fp8.py: blocks of 128 × 128, scale = largest / 448, at least
// 1e-12 / 448.
func quantised(w weightstest.Tensor) []weightstest.Tensor {
	parts := strings.Split(w.Name, ".")
	if parts[len(parts)-1] != "weight" || !slices.Contains(fp8Linear, parts[len(parts)-2]) {
		return []weightstest.Tensor{w}
	}
	const side = 128
	out, in := w.Shape[0], w.Shape[1]
	cols := (in + side - 1) / side
	scale := make([]float32, (out+side-1)/side*cols)
	value := func(i int) float32 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(w.Data[2*i:])) << 16)
	}
	block := func(i int) int { return i/in/side*cols + i%in/side }
	for i := range out * in {
		scale[block(i)] = max(scale[block(i)], float32(math.Abs(float64(value(i)))))
	}
	for i := range scale {
		scale[i] = max(scale[i], 1e-12) / 448
	}
	codes := make([]byte, out*in)
	for i := range codes {
		codes[i] = e4m3(value(i) / scale[block(i)])
	}
	return []weightstest.Tensor{
		{Name: w.Name, DType: "F8_E4M3", Shape: w.Shape, Data: codes},
		{Name: w.Name + "_scale_inv", DType: "F32", Shape: []int{len(scale) / cols, cols}, Data: weightstest.F32(scale...)},
	}
}

// e4m3 rounds a number of at most 448 to the nearest FP8 number (OCP E4M3: bias 7, no infinities), ties to the even code.
func e4m3(x float32) byte {
	sign, v := byte(0), float64(x)
	if math.Signbit(v) {
		sign, v = 0x80, -v
	}
	if v < 0x1p-6 { // below the least normal number; 8 is that number's code
		return sign | byte(math.RoundToEven(v*0x1p9))
	}
	fraction, exponent := math.Frexp(v) // in [½, 1)
	return sign | byte((exponent+6)<<3+int(math.RoundToEven(fraction*16))-8)
}
