// Package rig loads a checkpoint of test/models on the CPU backend, on one rank or on all of a layout in one process, and feeds it
// batches row by row: what the tests of the whole forward pass and its benchmarks share.
package rig

import (
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/topology"
)

// Models lists the checkpoints below test/models.
var Models = []string{"tiny-v2lite", "tiny-v3", "tiny-v3-fp8", "random/rnd-v2-greedy", "random/rnd-v2-group", "random/rnd-v3-yarn"}

// Tested returns the models that a test of the forward pass runs: all, or the smallest one under the race detector, which has
// nothing to find in the one goroutine of a forward pass and slows it some twentyfold.
func Tested() []string {
	if Racing() {
		return Models[len(Models)-1:]
	}
	return Models
}

// Racing says that the race detector is on: what is long already should then do less.
func Racing() bool { return raceEnabled }

// Dir returns the folder of a checkpoint, or of anything else below test/models.
func Dir(name string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "models", filepath.FromSlash(name))
}

// Rig is a model loaded at one place of a layout, and the blocks of its cache.
type Rig struct {
	testing.TB
	Config *config.Config
	Model  *deepseek.Model
	Limits nn.Limits
	Place  topology.Place
	Reader *weights.Reader // what the model was given
	Files  *weights.Checkpoint
	device hal.Device
	next   int32  // block
	steps  uint64 // run so far
}

// Load opens a model on a device of its own, for 8 sequences of 512 positions in blocks of the given size. It is closed when the
// test ends.
func Load(tb testing.TB, name string, blockSize int) *Rig {
	tb.Helper()
	return LoadRank(tb, Dir(name), topology.Place{TP: 1, EP: 1}, blockSize)
}

// LoadRank is Load of a folder at a place of a layout. Where that has other ranks, the model must join them before it can run.
func LoadRank(tb testing.TB, dir string, p topology.Place, blockSize int) *Rig {
	tb.Helper()
	return LoadForm(tb, dir, p, blockSize, weights.Stored)
}

// LoadForm is LoadRank with the weights in a form.
func LoadForm(tb testing.TB, dir string, p topology.Place, blockSize int, f weights.Form) *Rig {
	tb.Helper()
	return LoadOn(tb, cpu.Options{}, dir, p, blockSize, f)
}

// LoadOn is LoadForm on a device with options: so many threads, or without some kernels.
func LoadOn(tb testing.TB, o cpu.Options, dir string, p topology.Place, blockSize int, f weights.Form) *Rig {
	tb.Helper()
	return load(tb, o, dir, p, blockSize, f, false)
}

// LoadExpanded is LoadOn of a model whose rows attend in the expanded form, but for the first Batch.Decode of a step.
func LoadExpanded(tb testing.TB, o cpu.Options, dir string, p topology.Place, blockSize int, f weights.Form) *Rig {
	tb.Helper()
	return load(tb, o, dir, p, blockSize, f, true)
}

func load(tb testing.TB, o cpu.Options, dir string, p topology.Place, blockSize int, f weights.Form, expand bool) *Rig {
	tb.Helper()
	cfg, err := config.Load(dir)
	if err != nil {
		tb.Fatal(err)
	}
	ckpt, err := weights.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	dev, err := cpu.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	l := nn.Limits{Rows: 512, Samples: 512, Sequences: 8, ModelLen: 512, BlockSize: blockSize, Blocks: 8 * kv.BlocksFor(512, blockSize), ExpandPrompts: expand}
	reader := ckpt.NewReaderFor(f)
	m, err := deepseek.Load(tb.Context(), dev, cfg, p, reader, l)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		m.Close()
		Close(tb, dev)
		Close(tb, ckpt)
	})
	return &Rig{TB: tb, Config: cfg, Model: m, Limits: l, Place: p, Reader: reader, Files: ckpt, device: dev}
}

// Close closes c and fails the test if that fails.
func Close(tb testing.TB, c interface{ Close() error }) {
	tb.Helper()
	if err := c.Close(); err != nil {
		tb.Error(err)
	}
}

// Sequence is a prompt under way.
type Sequence struct {
	Blocks []int32
	Length int // positions in the cache
}

// Sequence reserves blocks for n positions, none next to another.
func (r *Rig) Sequence(n int) *Sequence {
	s := &Sequence{}
	for range kv.BlocksFor(n, r.Limits.BlockSize) {
		s.Blocks = append(s.Blocks, r.next)
		r.next = (r.next + 7) % int32(r.Limits.Blocks) // all block counts here are powers of two: 7 visits every block
	}
	return s
}

// Feed appends tokens of a sequence to a batch. The logits of the last row are wanted, or of all.
func (r *Rig) Feed(b *nn.Batch, s *Sequence, tokens []int32, all bool) {
	b.Width = kv.BlocksFor(r.Limits.ModelLen, r.Limits.BlockSize)
	seq := int32(b.Sequences())
	row := make([]int32, b.Width)
	copy(row, s.Blocks)
	b.Tables = append(b.Tables, row...)
	for i, tok := range tokens {
		if all || i == len(tokens)-1 {
			b.Samples = append(b.Samples, int32(len(b.Tokens)))
		}
		b.Tokens = append(b.Tokens, tok)
		b.Positions = append(b.Positions, int32(s.Length))
		b.Slots = append(b.Slots, kv.Slot(s.Blocks, s.Length, r.Limits.BlockSize))
		b.Seqs = append(b.Seqs, seq)
		s.Length++
	}
}

// Forward begins the next step, which Model.Share ends.
func (r *Rig) Forward(b *nn.Batch) (nn.Output, error) {
	r.steps++
	s := nn.Step{Number: r.steps, Exchange: topology.Local, Stages: 1}
	if r.Place.EP > 1 {
		s.Exchange = topology.AllGather
	}
	return r.Model.Forward(r.Context(), b, s)
}

// Step runs a whole step of a rank that is alone. The output is valid until the next one.
func (r *Rig) Step(b *nn.Batch) (nn.Output, error) {
	out, err := r.Forward(b)
	if err != nil {
		return nn.Output{}, err
	}
	return out, r.Model.Share(r.Context(), nil)
}

// Run is Step with a copy of the logits, which must be finite. // (samples, vocab)
func (r *Rig) Run(b *nn.Batch) []float32 {
	r.Helper()
	out, err := r.Step(b)
	if err != nil {
		r.Fatal(err)
	}
	for i, l := range out.BadLayer {
		if l >= 0 {
			r.Fatalf("sample %d: output of layer %d is not finite", i, l)
		}
	}
	return append([]float32(nil), out.Logits...)
}

// Read copies a tensor from the device in the middle of a step.
func (r *Rig) Read(t hal.Tensor) []float32 {
	r.Helper()
	v := make([]float32, t.Rows*t.Cols)
	r.Model.Stream().GetFloat32(v, t)
	if err := r.Model.Stream().Synchronize(r.Context()); err != nil {
		r.Fatal(err)
	}
	return v
}

// Greedy returns the index of the largest logit, ties to the lower.
func Greedy(logits []float32) int32 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int32(best)
}

// Logprob is the natural logarithm of a token's softmax, in float64.
func Logprob(logits []float32, token int32) float64 {
	top, sum := float64(logits[Greedy(logits)]), 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return float64(logits[token]) - top - math.Log(sum)
}
