package weights_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
)

func TestRequests(t *testing.T) {
	c := mustOpen(t, write(t,
		f32("model.layers.0.input_layernorm.weight", 1, 2, 3),
		f32("model.layers.1.input_layernorm.weight", 1, 2, 3),
		weightstest.Tensor{Name: "scalar", DType: "BF16", Data: weightstest.BF16(2)},
		weightstest.Tensor{Name: "nothing", DType: "F32", Shape: []int{0, 7}},
		weightstest.Tensor{Name: "int8", DType: "I8", Shape: []int{2}, Data: []byte{1, 2}},
		weightstest.Tensor{Name: "e5m2", DType: "F8_E5M2", Shape: []int{2}, Data: []byte{1, 2}},
		weightstest.Tensor{Name: "packed", DType: "F4", Shape: []int{4}, Data: []byte{1, 2}},
		weightstest.Tensor{Name: "long", DType: "I64", Shape: []int{1}, Data: make([]byte, 8)},
	))
	tests := []struct {
		name  string
		want  weights.Want
		words []string // nil: it works
	}{
		{"model.layers.0.input_layernorm.weight", weights.Want{Shape: []int{3}}, nil},
		{"model.layers.0.input_layernorm.weight", weights.Want{Shape: []int{3}, DTypes: []weights.DType{weights.F32}}, nil},
		{"model.layers.0.input_layernorm.weight", weights.Want{Shape: []int{4}}, []string{"model.safetensors", "has shape [3], want [4]"}},
		{"model.layers.0.input_layernorm.weight", weights.Want{Shape: []int{3, 1}}, []string{"want [3 1]"}},
		{"model.layers.0.input_layernorm.weight", weights.Want{DTypes: []weights.DType{weights.BF16, weights.F16}}, []string{"has type F32, want BF16 or F16"}},
		{"scalar", weights.Want{Shape: []int{}}, nil},
		{"nothing", weights.Want{Shape: []int{0, 7}}, nil},
		{"int8", weights.Want{}, []string{`tensor "int8": has type I8, want BF16 or F16 or F32 or F8_E4M3`}},
		{"int8", weights.Want{DTypes: []weights.DType{weights.I8}}, nil},
		{"e5m2", weights.Want{}, []string{"has type F8_E5M2"}},
		{"packed", weights.Want{}, []string{"has type F4"}},
		{"long", weights.Want{}, []string{"has type I64"}},
		{"model.layers.0.input_layer_norm.weight", weights.Want{Shape: []int{3}}, []string{`tensor "model.layers.0.input_layer_norm.weight" [3] is missing; nearest: "model.layers.0.input_layernorm.weight"`}},
		{"wholly.different", weights.Want{}, []string{"no similar name among 8 tensors"}},
	}
	for _, tt := range tests {
		r := c.NewReader()
		tensor, err := r.Tensor(tt.name, tt.want)
		if tt.words == nil {
			if err != nil {
				t.Error(err)
			}
			if r.Bytes() != int64(len(tensor.Data)) {
				t.Errorf("%s: counted %d bytes of %d", tt.name, r.Bytes(), len(tensor.Data))
			}
			continue
		}
		mustFail(t, err, tt.words...)
		if r.Bytes() != 0 || tensor.Data != nil {
			t.Errorf("%s: a refused request counted %d bytes and gave %d", tt.name, r.Bytes(), len(tensor.Data))
		}
	}
}

func TestUnused(t *testing.T) {
	c := mustOpen(t, write(t, f32("a", 1), f32("b", 1), f32("mine", 1), f32("others", 1), f32("model.layers.3.x", 1), f32("model.layers.12.x", 1),
		f32("model.layers.x.y", 1), f32("model.layers.0.self_attn.rotary_emb.inv_freq", 1)))
	if _, err := c.NewReader().Tensor("mine", weights.Want{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.NewReader().Tensor("a", weights.Want{Shape: []int{2}}); err == nil {
		t.Fatal("a wrong shape passed")
	}
	got := c.Unused(12)
	if want := []string{"a", "b", "model.layers.3.x", "model.layers.x.y", "others"}; !slices.Equal(got, want) {
		t.Errorf("unused %q, want %q", got, want)
	}
}

// Data at an odd offset comes as one aligned copy that all readers share.
func TestMisaligned(t *testing.T) {
	dir := t.TempDir()
	values := weightstest.F32(1, 2, 3)
	header, data := weightstest.Layout(
		weightstest.Tensor{Name: "bytes", DType: "U8", Shape: []int{1}, Data: []byte{7}},
		weightstest.Tensor{Name: "x", DType: "F32", Shape: []int{3}, Data: values},
		weightstest.Tensor{Name: "y", DType: "F8_E4M3", Shape: []int{1}, Data: []byte{1}})
	header += strings.Repeat(" ", -len(header)&7)
	for shift := range 8 {
		padded := header + strings.Repeat(" ", shift)
		do(t, weightstest.WriteRaw(filepath.Join(dir, "model.safetensors"), uint64(len(padded)), padded, data))
		c := mustOpen(t, dir)
		first, err := c.NewReader().Tensor("x", weights.Want{})
		do(t, err)
		second, err := c.NewReader().Tensor("x", weights.Want{})
		do(t, err)
		if !bytes.Equal(first.Data, values) || uintptr(unsafe.Pointer(&first.Data[0]))%4 != 0 {
			t.Errorf("shift %d: data %v at %p", shift, first.Data, &first.Data[0])
		}
		if &first.Data[0] != &second.Data[0] {
			t.Errorf("shift %d: two readers got two copies", shift)
		}
		wantCopies := 1
		if (shift+1)%4 == 0 { // "bytes" comes first
			wantCopies = 0
		}
		if _, err := c.NewReader().Tensor("y", weights.Want{}); err != nil {
			t.Error(err)
		}
		if n, size := c.Copied(); n != wantCopies || size != int64(wantCopies*len(values)) {
			t.Errorf("shift %d: %d copies with %d bytes, want %d", shift, n, size, wantCopies)
		}
	}
}

func TestReadersCountApart(t *testing.T) {
	c := mustOpen(t, write(t, f32("a", 1, 2), f32("b", 1, 2, 3)))
	one, two := c.NewReader(), c.NewReader()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				for _, name := range []string{"a", "b"} {
					if _, err := one.Tensor(name, weights.Want{}); err != nil {
						t.Error(err)
					}
				}
				if _, err := two.Tensor("a", weights.Want{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if one.Bytes() != 20 || two.Bytes() != 8 {
		t.Errorf("counted %d and %d bytes, want 20 and 8", one.Bytes(), two.Bytes())
	}
}

func TestLinearFaults(t *testing.T) {
	fp8 := func(name string, out, in int) weightstest.Tensor {
		return weightstest.Tensor{Name: name, DType: "F8_E4M3", Shape: []int{out, in}, Data: make([]byte, out*in)}
	}
	scale := func(name, dtype string, width, rows, cols int) weightstest.Tensor {
		return weightstest.Tensor{Name: name + "_scale_inv", DType: dtype, Shape: []int{rows, cols}, Data: make([]byte, width*rows*cols)}
	}
	r := mustOpen(t, write(t,
		fp8("good", 129, 128), scale("good", "F32", 4, 2, 1),
		fp8("bare", 4, 4),
		fp8("grid", 128, 129), scale("grid", "F32", 4, 1, 1),
		fp8("half", 4, 4), scale("half", "BF16", 2, 1, 1),
		weightstest.Tensor{Name: "int", DType: "I8", Shape: []int{1, 1}, Data: []byte{0}},
	)).NewReader()
	if l, err := r.Linear(weights.Matrix{Name: "good", Out: 129, In: 128}); err != nil || l.Scale == nil || !slices.Equal(l.Scale.Shape, []int{2, 1}) {
		t.Errorf("good: %+v, %v", l.Scale, err)
	}
	if r.Bytes() != 129*128+8 {
		t.Errorf("counted %d bytes, want weight and scales", r.Bytes())
	}
	for _, tt := range []struct {
		name    string
		out, in int
		words   []string
	}{
		{"bare", 4, 4, []string{`tensor "bare_scale_inv" [1 1] is missing`, `the scales of "bare", F8_E4M3 [4 4] in blocks of 128x128`}},
		{"grid", 128, 129, []string{`tensor "grid_scale_inv": has shape [1 1], want [1 2]`}},
		{"half", 4, 4, []string{`tensor "half_scale_inv": has type BF16, want F32`}},
		{"good", 128, 129, []string{"has shape [129 128], want [128 129]"}},
		{"int", 1, 1, []string{`tensor "int_scale" [1 1] is missing`, `the scales of "int", I8 [1 1] in blocks of 1x1`}},
		{"absent", 1, 1, []string{`tensor "absent" [1 1] is missing`}},
	} {
		_, err := r.Linear(weights.Matrix{Name: tt.name, Out: tt.out, In: tt.in})
		mustFail(t, err, tt.words...)
	}
}

func TestClose(t *testing.T) {
	c, err := weights.Open(write(t, f32("x", 1)))
	do(t, err)
	do(t, c.Close())
	do(t, c.Close())
	_, err = c.Tensor("x", weights.Want{})
	mustFail(t, err, "is closed")
	_, err = c.ScanNonFinite(t.Context())
	mustFail(t, err, "is closed")
}

func TestDTypeNames(t *testing.T) {
	// As the safetensors format spells them.
	for d, want := range map[weights.DType]string{weights.Bool: "BOOL", weights.F8E4M3: "F8_E4M3", weights.BF16: "BF16", weights.C64: "C64", 0: "unknown", 200: "unknown"} {
		if d.String() != want {
			t.Errorf("%d is %q, want %q", d, d, want)
		}
	}
}
