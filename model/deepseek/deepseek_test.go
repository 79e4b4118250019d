package deepseek_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights/weightstest"
	"github.com/moerack/moerack/topology"
)

// base is a small model with everything in it; its sizes share no factors, so that mixed-up strides show.
func base() *config.Config {
	return &config.Config{
		Architecture: config.DeepseekV3, HiddenSize: 40, NumLayers: 3, VocabSize: 50, MaxPositionEmbeddings: 64, RMSNormEps: 1e-5,
		NumHeads: 3, QLoraRank: 24, KVLoraRank: 20, QKNopeHeadDim: 12, QKRopeHeadDim: 8, VHeadDim: 10, RopeTheta: 10000,
		Rope:             &config.YaRN{Factor: 4, OriginalMaxPositionEmbeddings: 16, BetaFast: 32, BetaSlow: 1, MScale: 1, MScaleAllDim: 0.7},
		IntermediateSize: 56, MoEIntermediateSize: 22, NumRoutedExperts: 12, NumSharedExperts: 1, NumExpertsPerTok: 3, FirstKDenseReplace: 1,
		ScoringFunc: config.Sigmoid, TopKMethod: config.NoAuxTC, NGroup: 4, TopKGroup: 2, NormTopKProb: true, RoutedScalingFactor: 2.5,
	}
}

var prompt = []int32{3, 49, 7, 7, 0, 21, 30, 11, 5}

// TestReference compares the absorbed form with the expanded form in float64, over the shapes that configurations take.
func TestReference(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"V3":                 func(*config.Config) {},
		"no q_lora, no YaRN": func(c *config.Config) { c.QLoraRank, c.Rope = 0, nil },
		"greedy softmax": func(c *config.Config) {
			c.ScoringFunc, c.TopKMethod, c.NGroup, c.TopKGroup, c.NormTopKProb = config.Softmax, config.Greedy, 1, 1, false
		},
		"group limited": func(c *config.Config) {
			c.ScoringFunc, c.TopKMethod, c.NormTopKProb = config.Softmax, config.GroupLimitedGreedy, false
		},
		"one group":           func(c *config.Config) { c.NGroup, c.TopKGroup = 1, 1 },
		"no shared experts":   func(c *config.Config) { c.NumSharedExperts = 0 },
		"two shared experts":  func(c *config.Config) { c.NumSharedExperts = 2 },
		"experts from the 0.": func(c *config.Config) { c.FirstKDenseReplace = 0 },
		"all dense":           func(c *config.Config) { c.FirstKDenseReplace = 3 },
		"mscale = all_dim":    func(c *config.Config) { c.Rope.MScaleAllDim = 1 },
		"ragged blocks":       func(c *config.Config) { c.HiddenSize, c.IntermediateSize = 150, 260 },
	} {
		for _, dtype := range []string{"F32", "BF16", "F16", "F8_E4M3"} {
			t.Run(name+" "+dtype, func(t *testing.T) {
				c := base()
				change(c)
				const seed = 5
				t.Logf("seed %d", seed)
				k := newCheckpoint(seed, c, dtype)
				m, err := k.open(t, c)
				if err != nil {
					t.Fatal(err)
				}
				b := &nn.Batch{}
				feed(b, prompt)
				out, err := forward(t.Context(), m, b)
				if err != nil {
					t.Fatal(err)
				}
				for row, want := range (reference{c, k.values}).logits(prompt) {
					tol := 1e-4 * math.Sqrt(dot(want, want)/float64(len(want)))
					for i, w := range want {
						if got := float64(out.Logits[row*c.VocabSize+i]); !(math.Abs(got-w) <= tol) {
							t.Fatalf("position %d logit %d: %g, want %g", row, i, got, w)
						}
					}
				}
			})
		}
	}
}

// TestNonFinite: the first layer whose output is not finite is named, and only for the rows that it reaches.
func TestNonFinite(t *testing.T) {
	for _, tc := range []struct {
		tensor string
		row    int
		want   []int32 // of each position of prompt; other is a second sequence that must stay whole
		other  int32
	}{
		{"model.layers.1.input_layernorm.weight", 0, slices.Repeat([]int32{1}, 9), 1},
		{"model.layers.2.mlp.gate.weight", 4, slices.Repeat([]int32{2}, 9), 2},
		{"lm_head.weight", 17, slices.Repeat([]int32{3}, 9), 3},
		{"model.norm.weight", 0, slices.Repeat([]int32{3}, 9), 3},
		{"model.embed_tokens.weight", 21, []int32{-1, -1, -1, -1, -1, 0, 0, 0, 0}, -1}, // token 21 is at position 5; later ones attend to it
		{"model.embed_tokens.weight", 0, []int32{-1, -1, -1, -1, 0, 0, 0, 0, 0}, -1},   // the padding token too
	} {
		t.Run(fmt.Sprintf("%s row %d", tc.tensor, tc.row), func(t *testing.T) {
			c := base()
			k := newCheckpoint(5, c, "BF16")
			k.poison(t, tc.tensor, tc.row)
			m, err := k.open(t, c)
			if err != nil {
				t.Fatal(err)
			}
			b := &nn.Batch{}
			feed(b, prompt)
			feed(b, []int32{9, 8})
			b.Pad(b.Rows() + 3)
			out, err := forward(t.Context(), m, b)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := out.BadLayer, append(tc.want, tc.other, tc.other); !slices.Equal(got, want) {
				t.Errorf("first bad layers %v, want %v", got, want)
			}
		})
	}
}

// TestBatchFaults: what does not fit is refused before anything runs, and the model goes on.
func TestBatchFaults(t *testing.T) {
	c := base()
	m, err := newCheckpoint(5, c, "BF16").open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*nn.Batch){
		"no rows":                           func(b *nn.Batch) { b.Reset() },
		"33 rows, buffers hold 32":          func(b *nn.Batch) { b.Pad(33) },
		"token 50 outside":                  func(b *nn.Batch) { b.Tokens[2] = 50 },
		"token -1 outside":                  func(b *nn.Batch) { b.Tokens[2] = -1 },
		"position 64 outside":               func(b *nn.Batch) { b.Positions[8] = 64 },
		"slot 128 outside":                  func(b *nn.Batch) { b.Slots[0] = 128 },
		"sequence 1, table has 1":           func(b *nn.Batch) { b.Seqs[0] = 1 },
		"block 1 is number 32 of 32":        func(b *nn.Batch) { b.Tables[1] = 32 },
		"logits wanted of row 9":            func(b *nn.Batch) { b.Samples[0] = 9 },
		"9 tokens, 8 positions":             func(b *nn.Batch) { b.Positions = b.Positions[:8] },
		"block table of 16 entries in rows": func(b *nn.Batch) { b.Width = 5 },
	} {
		b := &nn.Batch{}
		feed(b, prompt)
		change(b)
		if _, err := forward(t.Context(), m, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	b := &nn.Batch{}
	feed(b, prompt)
	if _, err := forward(t.Context(), m, b); err != nil {
		t.Errorf("after refusals: %v", err)
	}
}

// TestForwardEndsWithContext: at the next layer, by name, and the model can be used again.
func TestForwardEndsWithContext(t *testing.T) {
	c := base()
	m, err := newCheckpoint(5, c, "BF16").open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	b := &nn.Batch{}
	feed(b, prompt)
	ctx, cancel := context.WithCancel(t.Context())
	m.Observe(func(p deepseek.Point, layer int, _ hal.Tensor) {
		if p == deepseek.LayerOutput && layer == 1 {
			cancel()
		}
	})
	if _, err := forward(ctx, m, b); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "layer 1") {
		t.Errorf("error %v, want one that says where the step was cancelled", err)
	}
	m.Observe(nil)
	if _, err := forward(t.Context(), m, b); err != nil {
		t.Errorf("after a cancelled step: %v", err)
	}
}

// TestBytes: what is counted before the load is what the load allocates, at every kind of place.
func TestBytes(t *testing.T) {
	for _, place := range []topology.Place{alone, {TP: 3, TPRank: 1, EP: 1}, {TP: 1, EP: 4, EPRank: 3}, {TP: 3, TPRank: 2, EP: 6, EPRank: 5}} {
		for _, change := range []func(*config.Config){func(*config.Config) {}, func(c *config.Config) { c.FirstKDenseReplace = 3 }, func(c *config.Config) { c.QLoraRank, c.NumSharedExperts = 0, 0 }} {
			c := base()
			c.IntermediateSize, c.MoEIntermediateSize = 48, 24 // three ranks can share them
			change(c)
			dev := &counting{}
			if _, err := newCheckpoint(5, c, "BF16").load(t, c, place, func(d hal.Device) hal.Device { dev.Device = d; return dev }); err != nil {
				t.Fatal(err)
			}
			// The loader widens the norms and the bias: everything else is what Bytes counts.
			if got, most := deepseek.Bytes(c, place, limits), dev.bytes; got > most || most-got > int64(4*(2*c.NumLayers+1)*(c.HiddenSize+c.KVLoraRank+c.QLoraRank+c.NumRoutedExperts)) {
				t.Errorf("%+v: counted %d bytes, allocated %d with the widened vectors", place, got, most)
			}
		}
	}
}

// counting counts what is allocated.
type counting struct {
	hal.Device
	bytes int64
}

func (c *counting) Alloc(d hal.DType, rows, cols int) (hal.Tensor, error) {
	c.bytes += int64(rows) * int64(cols) * int64(d.Size())
	return c.Device.Alloc(d, rows, cols)
}

// TestMissingTensors: one error names all that is missing, and how many more.
func TestMissingTensors(t *testing.T) {
	c := base()
	k := newCheckpoint(5, c, "BF16")
	k.tensors = slices.DeleteFunc(k.tensors, func(w weightstest.Tensor) bool {
		return strings.HasPrefix(w.Name, "model.layers.2.") || w.Name == "model.norm.weight"
	})
	_, err := k.open(t, c)
	if err == nil {
		t.Fatal("loaded without layer 2")
	}
	for _, want := range []string{"model.layers.2.input_layernorm.weight", "model.layers.2.self_attn.kv_b_proj.weight", "more faults"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}
