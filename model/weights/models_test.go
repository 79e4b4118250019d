package weights_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moerack/moerack/model/weights"
)

// Layers, hidden size and files of the table in test/models/README.md.
var testModels = []struct {
	dir    string
	files  int
	dtype  weights.DType // of most matrices
	layers int
	hidden int
	vocab  int
}{
	{"tiny-v2lite", 1, weights.BF16, 4, 192, 2048},
	{"tiny-v3", 2, weights.BF16, 4, 160, 2048},
	{"tiny-v3-fp8", 1, weights.F8E4M3, 4, 160, 2048},
	{"random/rnd-v2-greedy", 1, weights.F32, 3, 64, 2048},
	{"random/rnd-v2-group", 1, weights.BF16, 3, 64, 320},
	{"random/rnd-v3-yarn", 1, weights.BF16, 3, 64, 320},
}

func TestOpenTestModels(t *testing.T) {
	for _, m := range testModels {
		t.Run(filepath.Base(m.dir), func(t *testing.T) {
			c := mustOpen(t, filepath.Join(models, m.dir))
			r := c.NewReader()
			for _, name := range c.Names() {
				tensor, err := r.Tensor(name, weights.Want{})
				if err != nil {
					t.Fatal(err)
				}
				if tensor.Name != name || cap(tensor.Data) != len(tensor.Data) {
					t.Errorf("%s: got %s %v with %d bytes (cap %d)", name, tensor.Name, tensor.Shape, len(tensor.Data), cap(tensor.Data))
				}
			}
			files, total := dataBytes(t, filepath.Join(models, m.dir))
			if files != m.files {
				t.Errorf("%d files, want %d", files, m.files)
			}
			if r.Bytes() != total {
				t.Errorf("reader counted %d bytes, the files have %d after their headers", r.Bytes(), total)
			}
			if unused := c.Unused(m.layers); len(unused) > 0 {
				t.Errorf("unused after asking for all: %q", unused)
			}
			if n, _ := c.Copied(); n != 0 {
				t.Errorf("%d tensors of an aligned file were copied", n)
			}
			embed, err := c.Tensor("model.embed_tokens.weight", weights.Want{Shape: []int{m.vocab, m.hidden}})
			if err != nil || embed.DType == weights.F8E4M3 {
				t.Errorf("embedding: %v %v", embed.DType, err)
			}
			down, err := r.Linear(weights.Matrix{Name: "model.layers.1.mlp.experts.0.down_proj.weight", Out: m.hidden, In: map[bool]int{true: 64, false: 32}[m.layers == 4]})
			if err != nil {
				t.Fatal(err)
			}
			if down.Weight.DType != m.dtype || (down.Scale != nil) != (m.dtype == weights.F8E4M3) {
				t.Errorf("expert matrix is %s, scale %v, want %s", down.Weight.DType, down.Scale, m.dtype)
			}
			if down.Scale != nil && (!slices.Equal(down.Scale.Shape, []int{2, 1}) || down.Scale.DType != weights.F32) {
				t.Errorf("scale is %s %v, want F32 [2 1]", down.Scale.DType, down.Scale.Shape)
			}
			scan, err := c.ScanNonFinite(t.Context())
			if err != nil || len(scan.NonFinite) > 0 || scan.Tensors != len(c.Names()) || scan.Bytes != total {
				t.Errorf("scan: %+v, %v, want %d tensors, %d bytes, none faulty", scan, err, len(c.Names()), total)
			}
		})
	}
}

// MTP modules are known leftovers; with their layers counted in they are not.
func TestUnusedMTP(t *testing.T) {
	c := mustOpen(t, filepath.Join(models, "tiny-v3"))
	all := c.Unused(99)
	if !slices.Equal(all, c.Names()) {
		t.Fatalf("nothing was asked for, yet unused are %d of %d", len(all), len(c.Names()))
	}
	if main := c.Unused(4); len(main) >= len(all) || slices.Contains(main, "model.layers.4.enorm.weight") || !slices.Contains(main, "model.layers.3.input_layernorm.weight") {
		t.Errorf("of %d tensors %d are left without MTP", len(all), len(main))
	}
}

// Dequantized FP8 weights of tiny-v3-fp8 lie within rounding of the bf16 weights
// of tiny-v3, from which they were quantized (test/models/README.md): the scales
// and their blocks are the right ones. E4M3 has 3 bits of mantissa, so the
// relative error is at most 1/16, and 2^-10 of a block's scale for the smallest.
func TestLinearScalesBelong(t *testing.T) {
	quantized, plain := mustOpen(t, filepath.Join(models, "tiny-v3-fp8")).NewReader(), mustOpen(t, filepath.Join(models, "tiny-v3")).NewReader()
	const name, out, in = "model.layers.0.mlp.gate_proj.weight", 320, 160
	q, err := quantized.Linear(weights.Matrix{Name: name, Out: out, In: in})
	do(t, err)
	p, err := plain.Linear(weights.Matrix{Name: name, Out: out, In: in})
	do(t, err)
	if p.Scale != nil || p.Weight.DType != weights.BF16 || q.Scale == nil || !slices.Equal(q.Scale.Shape, []int{3, 2}) {
		t.Fatalf("plain %s (scale %v), quantized %s", p.Weight.DType, p.Scale, q.Weight.DType)
	}
	for i := range out {
		for j := range in {
			want := float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(p.Weight.Data[2*(i*in+j):])) << 16))
			scale := float64(math.Float32frombits(binary.LittleEndian.Uint32(q.Scale.Data[4*(i/128*2+j/128):])))
			got := e4m3(q.Weight.Data[i*in+j]) * scale
			if math.Abs(got-want) > math.Abs(want)/16+scale/1024 {
				t.Fatalf("weight (%d, %d) is %v, quantized %v", i, j, want, got)
			}
		}
	}
	if want := int64(out*in + 3*2*4); quantized.Bytes() != want || plain.Bytes() != 2*out*in {
		t.Errorf("counted %d and %d bytes, want %d and %d", quantized.Bytes(), plain.Bytes(), want, 2*out*in)
	}
}

// dataBytes gives how many safetensors files there are, and their bytes after the headers.
func dataBytes(t *testing.T, dir string) (files int, total int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	do(t, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		do(t, err)
		total += int64(len(data)) - 8 - int64(binary.LittleEndian.Uint64(data))
	}
	return len(paths), total
}

// e4m3 gives the value of an F8_E4M3 number.
func e4m3(b byte) float64 {
	exponent, mantissa := int(b>>3&15), float64(b&7)
	v := math.Ldexp(1+mantissa/8, exponent-7)
	if exponent == 0 {
		v = math.Ldexp(mantissa/8, -6)
	}
	if b&0x80 != 0 {
		v = -v
	}
	return v
}

// The index of tiny-v3 and the headers of its shards say the same.
func TestIndexAgrees(t *testing.T) {
	dir := filepath.Join(models, "tiny-v3")
	data, err := os.ReadFile(filepath.Join(dir, "model.safetensors.index.json"))
	do(t, err)
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	do(t, json.Unmarshal(data, &index))
	c := mustOpen(t, dir)
	if len(index.WeightMap) != len(c.Names()) {
		t.Errorf("index has %d tensors, the checkpoint %d", len(index.WeightMap), len(c.Names()))
	}
	for name, file := range index.WeightMap {
		if _, err := c.Tensor(name, weights.Want{}); err != nil {
			t.Errorf("%s, in %s as the index says: %v", name, file, err)
		}
	}
}
