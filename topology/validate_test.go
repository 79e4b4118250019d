package topology

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// v2lite is DeepSeek-V2-Lite by its published config.json: two shared experts of 1408.
var v2lite = Dims{Heads: 16, Experts: 64, DenseWidth: 10944, ExpertWidth: 1408, SharedWidth: 2816, Vocab: 102400}

func TestValidate(t *testing.T) {
	small := Dims{Heads: 5, Experts: 6, DenseWidth: 10, ExpertWidth: 5, SharedWidth: 15, Vocab: 100}
	dense := Dims{Heads: 4, DenseWidth: 8, Vocab: 100}
	for _, tt := range []struct {
		name   string
		layout Layout
		dims   Dims
		want   []string // one line each
	}{
		{"one rank", Layout{1, 1, false}, small, nil},
		{"one rank, experts spread over it", Layout{1, 1, true}, small, nil},
		{"published model", Layout{8, 8, true}, v2lite, nil},
		{"engines side by side need not divide anything", Layout{7, 1, false}, v2lite, nil},
		{"dense model", Layout{3, 4, false}, dense, nil},
		{"nothing known of the model", Layout{3, 5, false}, Dims{}, nil},
		{"no engine, no rank", Layout{0, -1, false}, small, []string{
			"data-parallel-size=0: must be 1 … 1048576",
			"tensor-parallel-size=-1: must be 1 … 1048576",
		}},
		{"beyond reason", Layout{1 << 62, 1 << 62, true}, Dims{Heads: 1 << 62, Experts: 1, DenseWidth: 1 << 62, Vocab: 1 << 62}, []string{
			"data-parallel-size=4611686018427387904 × tensor-parallel-size=4611686018427387904: must be at most 1048576 ranks",
		}},
		{"one size in the way", Layout{1, 2, true}, Dims{Heads: 5, Experts: 10, DenseWidth: 10, Vocab: 100}, []string{
			"tensor-parallel-size=2 must divide the 5 attention heads: legal are 1, 5",
		}},
		{"all sizes in the way", Layout{1, 4, false}, small, []string{
			"tensor-parallel-size=4 must divide the 5 attention heads and the width 10 of dense layers and the width 15 of shared experts and the width 5 of experts (enable-expert-parallel is off): legal are 1, 5",
		}},
		{"experts are cut with expert parallelism off only", Layout{1, 2, false}, Dims{Heads: 4, Experts: 4, DenseWidth: 4, ExpertWidth: 3, Vocab: 100}, []string{
			"tensor-parallel-size=2 must divide the width 3 of experts (enable-expert-parallel is off): legal are 1",
		}},
		{"experts are whole with it", Layout{1, 2, true}, Dims{Heads: 4, Experts: 4, DenseWidth: 4, ExpertWidth: 3, Vocab: 100}, nil},
		{"vocabulary too small", Layout{1, 4, false}, Dims{Heads: 8, DenseWidth: 8, Vocab: 5}, []string{
			"tensor-parallel-size=4 leaves a rank without a part of the vocabulary of 5: legal are 1, 2",
		}},
		{"more engines than experts", Layout{128, 1, true}, v2lite, []string{
			"data-parallel-size=128 × tensor-parallel-size=1 = 128 ranks must divide the 64 experts (enable-expert-parallel): with tensor-parallel-size=1 legal for data-parallel-size are 1, 2, 4, 8, 16, 32, 64",
		}},
		{"engines that do not divide the experts", Layout{3, 2, true}, v2lite, []string{
			"data-parallel-size=3 × tensor-parallel-size=2 = 6 ranks must divide the 64 experts (enable-expert-parallel): with tensor-parallel-size=2 legal for data-parallel-size are 1, 2, 4, 8, 16, 32",
		}},
		{"either can change", Layout{32, 4, true}, v2lite, []string{
			"data-parallel-size=32 × tensor-parallel-size=4 = 128 ranks must divide the 64 experts (enable-expert-parallel): with tensor-parallel-size=4 legal for data-parallel-size are 1, 2, 4, 8, 16; with data-parallel-size=32 legal for tensor-parallel-size are 1, 2",
		}},
		{"TP wrong for heads and experts: what is legal fits both", Layout{2, 3, true}, v2lite, []string{
			"tensor-parallel-size=3 must divide the 16 attention heads and the width 2816 of shared experts: legal are 1, 2, 4, 8, 16",
			"data-parallel-size=2 × tensor-parallel-size=3 = 6 ranks must divide the 64 experts (enable-expert-parallel): with data-parallel-size=2 legal for tensor-parallel-size are 1, 2, 4, 8, 16",
		}},
		{"both wrong", Layout{7, 3, true}, v2lite, []string{
			"tensor-parallel-size=3 must divide the 16 attention heads and the width 2816 of shared experts: legal are 1, 2, 4, 8, 16",
			"data-parallel-size=7 × tensor-parallel-size=3 = 21 ranks must divide the 64 experts (enable-expert-parallel): with tensor-parallel-size=1 legal for data-parallel-size are 1, 2, 4, 8, 16, 32, 64",
		}},
		{"nothing to spread", Layout{2, 1, true}, dense, []string{
			"enable-expert-parallel: the model has no routed experts that could be spread: leave it off",
		}},
		{"one fault does not hide others", Layout{0, 3, true}, dense, []string{
			"data-parallel-size=0: must be 1 … 1048576",
			"tensor-parallel-size=3 must divide the 4 attention heads and the width 8 of dense layers: legal are 1, 2, 4",
			"enable-expert-parallel: the model has no routed experts that could be spread: leave it off",
		}},
	} {
		if got, want := text(tt.layout.Validate(tt.dims)), strings.Join(tt.want, "\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

// TestLegalValuesAreLegal tries what faults of random layouts call legal, and what they don't.
func TestLegalValuesAreLegal(t *testing.T) {
	const seed = 13
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		d := Dims{Heads: 1 + r.IntN(24), Experts: r.IntN(25), DenseWidth: 12 * r.IntN(8), ExpertWidth: 6 * r.IntN(8), SharedWidth: 12 * r.IntN(3), Vocab: 1 + r.IntN(40)}
		l := Layout{1 + r.IntN(8), 1 + r.IntN(8), r.IntN(2) == 0}
		if l.ExpertParallel && (d.Experts == 0 || d.Experts%l.DataParallel != 0) {
			continue // no value of TensorParallel alone is legal
		}
		legal := l.legalTensorParallel(d)
		next := 0
		for tp := 1; tp <= 24; tp++ {
			try := l
			try.TensorParallel = tp
			named := next < len(legal) && legal[next] == tp
			if named {
				next++
			}
			if err := try.Validate(d); (err == nil) != named {
				t.Fatalf("%+v for %+v: tensor-parallel-size=%d is called legal: %v (%v), validated: %v", l, d, tp, named, legal, err)
			}
		}
		if next != len(legal) {
			t.Fatalf("%+v for %+v: legal are %v", l, d, legal)
		}
	}
}
