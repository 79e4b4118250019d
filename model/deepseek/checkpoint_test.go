package deepseek_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
	"github.com/moerack/moerack/topology"
)

// checkpoint is a random model: what the file holds, and the real values in float64.
type checkpoint struct {
	g       *rand.Rand
	dtype   string // of the matrices
	tensors []weightstest.Tensor
	values  map[string][]float64
}

func newCheckpoint(seed uint64, c *config.Config, dtype string) *checkpoint {
	k := &checkpoint{g: rand.New(rand.NewPCG(seed, 0)), dtype: dtype, values: map[string][]float64{}}
	k.matrix("model.embed_tokens.weight", c.VocabSize, c.HiddenSize, 1)
	for i := range c.NumLayers {
		p := fmt.Sprintf("model.layers.%d.", i)
		k.vector(p+"input_layernorm.weight", c.HiddenSize, 1)
		k.vector(p+"post_attention_layernorm.weight", c.HiddenSize, 1)
		a, heads := p+"self_attn.", c.NumHeads*c.QKHeadDim()
		if c.QLoraRank == 0 {
			k.linear(a+"q_proj.weight", heads, c.HiddenSize)
		} else {
			k.linear(a+"q_a_proj.weight", c.QLoraRank, c.HiddenSize)
			k.vector(a+"q_a_layernorm.weight", c.QLoraRank, 1)
			k.linear(a+"q_b_proj.weight", heads, c.QLoraRank)
		}
		k.linear(a+"kv_a_proj_with_mqa.weight", c.KVLoraRank+c.QKRopeHeadDim, c.HiddenSize)
		k.vector(a+"kv_a_layernorm.weight", c.KVLoraRank, 1)
		k.linear(a+"kv_b_proj.weight", c.NumHeads*(c.QKNopeHeadDim+c.VHeadDim), c.KVLoraRank)
		k.linear(a+"o_proj.weight", c.HiddenSize, c.NumHeads*c.VHeadDim)
		if !c.IsMoE(i) {
			k.mlp(p+"mlp.", c.IntermediateSize, c.HiddenSize)
			continue
		}
		k.matrix(p+"mlp.gate.weight", c.NumRoutedExperts, c.HiddenSize, 1)
		if c.TopKMethod == config.NoAuxTC {
			k.vector(p+"mlp.gate.e_score_correction_bias", c.NumRoutedExperts, 0)
		}
		for e := range c.NumRoutedExperts {
			k.mlp(fmt.Sprintf("%smlp.experts.%d.", p, e), c.MoEIntermediateSize, c.HiddenSize)
		}
		if c.NumSharedExperts > 0 {
			k.mlp(p+"mlp.shared_experts.", c.MoEIntermediateSize*c.NumSharedExperts, c.HiddenSize)
		}
	}
	k.vector("model.norm.weight", c.HiddenSize, 1)
	k.matrix("lm_head.weight", c.VocabSize, c.HiddenSize, 1)
	return k
}

func (k *checkpoint) mlp(p string, width, hidden int) {
	k.linear(p+"gate_proj.weight", width, hidden)
	k.linear(p+"up_proj.weight", width, hidden)
	k.linear(p+"down_proj.weight", hidden, width)
}

// vector adds F32 numbers around mean.
func (k *checkpoint) vector(name string, n int, mean float64) {
	v, data := make([]float64, n), make([]float32, n)
	for i := range v {
		data[i] = float32(mean + 0.1*k.g.NormFloat64())
		v[i] = float64(data[i])
	}
	k.add(name, "F32", []int{n}, weightstest.F32(data...), v)
}

// linear adds a matrix that keeps the size of what passes it, in the checkpoint's type.
func (k *checkpoint) linear(name string, out, in int) {
	if k.dtype != "F8_E4M3" {
		k.matrix(name, out, in, 1/math.Sqrt(float64(in)))
		return
	}
	codes, v := make([]byte, out*in), make([]float64, out*in)
	cols := (in + 127) / 128
	scale := make([]float32, (out+127)/128*cols)
	for i := range scale {
		scale[i] = float32((0.5 + k.g.Float64()) / math.Sqrt(float64(in)))
	}
	for i := range codes {
		c := k.g.IntN(0x48) // up to 2
		codes[i] = byte(c | k.g.IntN(2)<<7)
		x := float32(math.Ldexp(1+float64(c&7)/8, c>>3-7))
		if c < 8 {
			x = float32(c) * 0x1p-9
		}
		if codes[i] >= 0x80 {
			x = -x
		}
		v[i] = float64(x * scale[i/in/128*cols+i%in/128])
	}
	k.add(name, "F8_E4M3", []int{out, in}, codes, v)
	k.add(name+"_scale_inv", "F32", []int{len(scale) / cols, cols}, weightstest.F32(scale...), nil)
}

// matrix adds normal numbers of a deviation; under FP8 it stays BF16, as published.
func (k *checkpoint) matrix(name string, out, in int, deviation float64) {
	v, f := make([]float64, out*in), make([]float32, out*in)
	var data []byte
	dtype := k.dtype
	if dtype == "F8_E4M3" {
		dtype = "BF16"
	}
	for i := range v {
		f[i] = float32(deviation * k.g.NormFloat64())
		switch dtype {
		case "BF16":
			f[i] = math.Float32frombits(math.Float32bits(f[i]) &^ 0xffff)
		case "F16": // cut to 10 bits of fraction; exponents are in range
			f[i] = math.Float32frombits(math.Float32bits(f[i]) &^ 0x1fff)
			if math.Abs(float64(f[i])) < 0x1p-14 {
				f[i] = 0
			}
			b := math.Float32bits(f[i])
			h := uint16(b>>16&0x8000) | uint16(b>>13&0x3ff)
			if f[i] != 0 {
				h |= uint16(b>>23&0xff-112) << 10
			}
			data = binary.LittleEndian.AppendUint16(data, h)
		}
		v[i] = float64(f[i])
	}
	switch dtype {
	case "BF16":
		data = weightstest.BF16(f...)
	case "F32":
		data = weightstest.F32(f...)
	}
	k.add(name, dtype, []int{out, in}, data, v)
}

func (k *checkpoint) add(name, dtype string, shape []int, data []byte, v []float64) {
	k.tensors = append(k.tensors, weightstest.Tensor{Name: name, DType: dtype, Shape: shape, Data: data})
	if v != nil {
		k.values[name] = v
	}
}

// poison sets the first element of a row of an F32 or BF16 tensor to NaN.
func (k *checkpoint) poison(tb testing.TB, name string, row int) {
	tb.Helper()
	for _, t := range k.tensors {
		if t.Name == name {
			width := len(t.Data)
			if len(t.Shape) == 2 {
				width /= t.Shape[0]
			}
			size := map[string]int{"F32": 4, "BF16": 2}[t.DType]
			copy(t.Data[row*width:], []byte{0xff, 0xff, 0xff, 0x7f}[4-size:])
			return
		}
	}
	tb.Fatalf("no tensor %q", name)
}

// limits fit the tests of this package.
var limits = nn.Limits{Rows: 32, Samples: 32, Sequences: 4, ModelLen: 64, Blocks: 32, BlockSize: 4}

// alone is the place of a rank without others.
var alone = topology.Place{TP: 1, EP: 1}

// forward runs a whole step of a rank without others.
func forward(ctx context.Context, m *deepseek.Model, b *nn.Batch) (nn.Output, error) {
	out, err := m.Forward(ctx, b, nn.Step{Number: 1, Exchange: topology.Local, Stages: 1})
	if err != nil {
		return nn.Output{}, err
	}
	return out, m.Share(ctx, nil)
}

// open writes the checkpoint and loads it.
func (k *checkpoint) open(tb testing.TB, c *config.Config) (*deepseek.Model, error) {
	tb.Helper()
	return k.at(tb, c, alone)
}

// at is open at a place of a layout.
func (k *checkpoint) at(tb testing.TB, c *config.Config, p topology.Place) (*deepseek.Model, error) {
	tb.Helper()
	return k.load(tb, c, p, func(d hal.Device) hal.Device { return d })
}

// load is at on a wrapped device.
func (k *checkpoint) load(tb testing.TB, c *config.Config, p topology.Place, wrap func(hal.Device) hal.Device) (*deepseek.Model, error) {
	tb.Helper()
	dir := tb.TempDir()
	if err := weightstest.Write(filepath.Join(dir, "model.safetensors"), k.tensors...); err != nil {
		tb.Fatal(err)
	}
	ckpt, err := weights.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	m, err := deepseek.Load(tb.Context(), wrap(dev), c, p, ckpt.NewReader(), limits)
	tb.Cleanup(func() {
		if m != nil {
			m.Close()
		}
		if err := dev.Close(); err != nil {
			tb.Error(err)
		}
		if err := ckpt.Close(); err != nil {
			tb.Error(err)
		}
	})
	return m, err
}

// feed appends a sequence of its own blocks, all of whose logits are wanted.
func feed(b *nn.Batch, tokens []int32) {
	b.Width = kv.BlocksFor(limits.ModelLen, limits.BlockSize)
	seq := b.Sequences()
	row := make([]int32, b.Width)
	for i := range kv.BlocksFor(len(tokens), limits.BlockSize) {
		row[i] = int32(seq*8 + i)
	}
	b.Tables = append(b.Tables, row...)
	for i, t := range tokens {
		b.Samples = append(b.Samples, int32(b.Rows()))
		b.Tokens = append(b.Tokens, t)
		b.Positions = append(b.Positions, int32(i))
		b.Slots = append(b.Slots, kv.Slot(row, i, limits.BlockSize))
		b.Seqs = append(b.Seqs, int32(seq))
	}
}
