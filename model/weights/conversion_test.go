package weights_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
)

// formats makes the same matrix in every stored type, named by it, with values that all types hold; FP8 has scales of ½ and 2 in turn.
func formats(t *testing.T, out, in int) (*weights.Checkpoint, [][]float32) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	codes, values := []byte{0x00, 0x38, 0xb8, 0x40, 0x30, 0xc4, 0x39}, []float32{0, 1, -1, 2, 0.5, -3, 1.125} // F8_E4M3
	halves := []uint16{0, 0x3c00, 0xbc00, 0x4000, 0x3800, 0xc200, 0x3c80}
	gridRows, gridCols := (out+127)/128, (in+127)/128
	scales := make([]float32, gridRows*gridCols)
	for i := range scales {
		scales[i] = float32(1+3*(i%2)) / 2
	}
	rows := make([][]float32, out)
	var f32, bf16, f16, f8 []byte
	for o := range rows {
		for i := range in {
			k, s := rnd.IntN(len(codes)), scales[o/128*gridCols+i/128]
			v := values[k] * s
			rows[o] = append(rows[o], v)
			f32 = append(f32, weightstest.F32(v)...)
			bf16 = append(bf16, weightstest.BF16(v)...)
			exp := uint16(1) // s = 2 or ½ moves a half's exponent
			h := halves[k]
			if h&0x7fff != 0 {
				if s == 2 {
					h += exp << 10
				} else {
					h -= exp << 10
				}
			}
			f16 = binary.LittleEndian.AppendUint16(f16, h)
			f8 = append(f8, codes[k])
		}
	}
	shape := []int{out, in}
	return mustOpen(t, write(t,
		weightstest.Tensor{Name: "f8_scale_inv", DType: "F32", Shape: []int{gridRows, gridCols}, Data: weightstest.F32(scales...)},
		weightstest.Tensor{Name: "f32", DType: "F32", Shape: shape, Data: f32},
		weightstest.Tensor{Name: "bf16", DType: "BF16", Shape: shape, Data: bf16},
		weightstest.Tensor{Name: "f16", DType: "F16", Shape: shape, Data: f16},
		weightstest.Tensor{Name: "f8", DType: "F8_E4M3", Shape: shape, Data: f8},
	)), rows
}

// TestConvert: every stored type gives the same int8 and the same BF16, row by row as QuantizeInt8 says, at any size.
func TestConvert(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {3, 7}, {130, 129}, {300, 1000}} {
		out, in := size[0], size[1]
		c, rows := formats(t, out, in)
		for i, name := range []string{"f32", "bf16", "f16", "f8"} {
			r := c.NewReader()
			m := weights.Matrix{Name: name, Out: out, In: in, Form: weights.Int8}
			l, err := r.Linear(m)
			do(t, err)
			if l.Weight.DType != weights.I8 || !slices.Equal(l.Weight.Shape, size[:]) || !slices.Equal(l.Scale.Shape, []int{out, 1}) || l.BlockRows != 1 || l.BlockCols != in {
				t.Fatalf("%s: %s %v, scales %v in blocks of %d×%d", name, l.Weight.DType, l.Weight.Shape, l.Scale.Shape, l.BlockRows, l.BlockCols)
			}
			if a := uintptr(unsafe.Pointer(&l.Weight.Data[0])) % 64; a != 0 {
				t.Errorf("%s: data at %d past a cache line", name, a)
			}
			q := make([]byte, in)
			for o, row := range rows {
				scale := weights.QuantizeInt8(q, row)
				if got := math.Float32frombits(binary.LittleEndian.Uint32(l.Scale.Data[4*o:])); got != scale || !bytes.Equal(q, l.Weight.Data[o*in:(o+1)*in]) {
					t.Fatalf("%s (%d, %d): row %d differs from QuantizeInt8, scale %v for %v", name, out, in, o, got, scale)
				}
			}
			if want := int64(out*in + 4*out); r.Bytes() != want {
				t.Errorf("%s: counted %d bytes, want %d", name, r.Bytes(), want)
			}
			m.Form = weights.BFloat16
			l, err = r.Linear(m)
			do(t, err)
			stored, err := c.Tensor("bf16", weights.Want{})
			do(t, err)
			if l.Weight.DType != weights.BF16 || l.Scale != nil || !bytes.Equal(l.Weight.Data, stored.Data) {
				t.Errorf("%s (%d, %d): its BF16 differs", name, out, in)
			}
			if inPlace := &l.Weight.Data[0] == &stored.Data[0]; inPlace != (name == "bf16") {
				t.Errorf("%s: used in place: %v", name, inPlace)
			}
			n, size := c.Converted()
			conversions := []int{2, 3, 5, 7}[i] // BF16 is BF16 already
			want := int64(i+1)*int64(out*in+4*out) + int64(conversions-i-1)*int64(2*out*in)
			if n != conversions || size != want {
				t.Errorf("after %s %d conversions of %d bytes, want %d of %d", name, n, size, conversions, want)
			}
		}
	}
}

// TestConvertOnce: whoever asks gets the same memory, and parts are parts of it.
func TestConvertOnce(t *testing.T) {
	const out, in = 300, 520
	c, _ := formats(t, out, in)
	m := weights.Matrix{Name: "f8", Out: out, In: in, Form: weights.Int8}
	results := make([]weights.Linear, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			l, err := c.NewReader().LinearRows(m, 0, 100+i)
			if err != nil {
				t.Error(err)
			}
			results[i] = l
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for i, l := range results {
		if &l.Weight.Data[0] != &results[0].Weight.Data[0] || len(l.Weight.Data) != (100+i)*in || l.Scale.Shape[0] != out {
			t.Errorf("reader %d has memory of its own, or not its part", i)
		}
	}
	if n, size := c.Converted(); n != 1 || size != out*in+4*out {
		t.Errorf("%d conversions of %d bytes, want one", n, size)
	}
	r := c.NewReader()
	_, err := r.LinearColumns(m, 10, 30)
	do(t, err)
	if want := int64(20*out + 4*out); r.Bytes() != want {
		t.Errorf("columns count %d bytes, want %d", r.Bytes(), want)
	}
}

// TestHeads: rows of each head, in place with the others or gathered alone.
func TestHeads(t *testing.T) {
	const out, in, size = 24, 40, 8 // 3 heads
	c, rows := formats(t, out, in)
	picked := weights.Heads{Size: size, From: 5, To: 7}
	r := c.NewReader()
	l, first, err := r.LinearHeads(weights.Matrix{Name: "f32", Out: out, In: in, Form: weights.Int8, Heads: picked}, 1, 3)
	do(t, err)
	if want := (weights.Heads{Size: 2, To: 2}); l.Heads != want || first != 2 || !slices.Equal(l.Weight.Shape, []int{4, in}) || !slices.Equal(l.Scale.Shape, []int{6, 1}) {
		t.Fatalf("gathered %+v, %v, scales %v, first row %d", l.Heads, l.Weight.Shape, l.Scale.Shape, first)
	}
	q := make([]byte, in)
	for i, o := range []int{13, 14, 21, 22} {
		weights.QuantizeInt8(q, rows[o])
		if !bytes.Equal(q, l.Weight.Data[i*in:(i+1)*in]) {
			t.Errorf("gathered row %d is not row %d", i, o)
		}
	}
	if r.Bytes() != 4*in+4*4 {
		t.Errorf("counted %d bytes, want %d", r.Bytes(), 4*in+4*4)
	}
	r = c.NewReader()
	for _, h := range []weights.Heads{{Size: size, To: 5}, {Size: size, From: 5, To: size}} {
		l, first, err = r.LinearHeads(weights.Matrix{Name: "bf16", Out: out, In: in, Form: weights.BFloat16, Heads: h}, 1, 2)
		do(t, err)
		stored, err := c.Tensor("bf16", weights.Want{})
		do(t, err)
		if l.Heads != h || first != size || &l.Weight.Data[0] != &stored.Data[size*in*2] || !slices.Equal(l.Weight.Shape, []int{size, in}) {
			t.Errorf("in place: %+v, %v, first row %d", l.Heads, l.Weight.Shape, first)
		}
	}
	if r.Bytes() != 2*size*in {
		t.Errorf("two things of a head count %d bytes, want %d", r.Bytes(), 2*size*in)
	}
	for _, h := range []weights.Heads{{Size: 7, To: 1}, {Size: 8, From: 3, To: 3}, {Size: 8, From: 1, To: 9}, {Size: -8, To: 1}} {
		_, _, err = r.LinearHeads(weights.Matrix{Name: "bf16", Out: out, In: in, Heads: h}, 0, 1)
		mustFail(t, err, "do not fit 24 rows")
	}
	_, _, err = r.LinearHeads(weights.Matrix{Name: "bf16", Out: out, In: in, Heads: picked}, 0, 4)
	mustFail(t, err, "heads [0, 4) lie outside the matrix, want 0 ≤ from < to ≤ 3")
	_, err = r.LinearRows(weights.Matrix{Name: "bf16", Out: out, In: in, Heads: picked}, 0, 4)
	mustFail(t, err, "rows of a matrix whose heads are picked")
}

// TestInPlace: what is stored in the form that is asked for costs no memory.
func TestInPlace(t *testing.T) {
	c := mustOpen(t, write(t,
		weightstest.Tensor{Name: "w_scale", DType: "F32", Shape: []int{2, 1}, Data: weightstest.F32(1, 2)},
		weightstest.Tensor{Name: "w", DType: "I8", Shape: []int{2, 3}, Data: []byte{1, 2, 3, 4, 5, 0x81}},
	))
	for _, form := range []weights.Form{weights.Stored, weights.Int8} {
		m := weights.Matrix{Name: "w", Out: 2, In: 3, Form: form}
		l, err := c.NewReader().LinearRows(m, 1, 2)
		do(t, err)
		if l.Weight.DType != weights.I8 || !bytes.Equal(l.Weight.Data, []byte{4, 5, 0x81}) || l.BlockRows != 1 || l.BlockCols != 3 || len(l.Scale.Data) != 8 {
			t.Errorf("form %v: %+v", form, l)
		}
		if n, err := c.ConversionBytes(m); n != 0 || err != nil {
			t.Errorf("form %v: takes %d bytes, %v", form, n, err)
		}
	}
	if n, size := c.Converted(); n != 0 || size != 0 {
		t.Errorf("%d conversions of %d bytes", n, size)
	}
	_, err := c.NewReader().Linear(weights.Matrix{Name: "w", Out: 2, In: 3, Form: weights.BFloat16})
	mustFail(t, err, `tensor "w": I8 cannot be converted to BF16`)
	_, err = c.ConversionBytes(weights.Matrix{Name: "w", Out: 2, In: 3, Form: weights.BFloat16})
	mustFail(t, err, "I8 cannot be converted")
}

// TestConvertModel: the estimate is what a conversion takes, and a closed checkpoint converts nothing.
func TestConvertModel(t *testing.T) {
	c, err := weights.Open(filepath.Join(models, "tiny-v3-fp8"))
	do(t, err)
	m := weights.Matrix{Name: "model.layers.0.self_attn.kv_b_proj.weight", Out: 5 * 64, In: 64, Form: weights.Int8, Heads: weights.Heads{Size: 64, From: 32, To: 64}}
	want, err := c.ConversionBytes(m)
	do(t, err)
	if want != 5*32*64+5*32*4 {
		t.Errorf("estimated %d bytes", want)
	}
	_, _, err = c.NewReader().LinearHeads(m, 0, 5)
	do(t, err)
	if _, got := c.Converted(); got != want {
		t.Errorf("took %d bytes, estimated %d", got, want)
	}
	do(t, c.Close())
	_, _, err = c.NewReader().LinearHeads(m, 0, 5)
	mustFail(t, err, "is closed")
}
