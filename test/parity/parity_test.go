package parity_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/test/rig"
)

// The tolerances of test/models/README.md, section "Tolerances".
const (
	logitTol   = 5e-4 // absolute
	logprobTol = 2e-4 // absolute
	hiddenTol  = 2e-4 // largest error / rms of the tensor
	weightTol  = 1e-4 // relative
)

// TestGreedy runs every prompt of every fixture: last logits of the prompt, 48 greedy tokens, their log-probabilities.
func TestGreedy(t *testing.T) {
	for _, name := range rig.Tested() {
		t.Run(name, func(t *testing.T) {
			f, r := readFixture(t, name), rig.Load(t, name, 16)
			worstLogit, worstLogprob := 0.0, 0.0
			for _, p := range f.Prompts {
				s := r.Sequence(len(p.IDs) + len(p.GreedyIDs))
				tokens := p.IDs
				for i, want := range p.GreedyIDs {
					b := &nn.Batch{}
					r.Feed(b, s, tokens, false)
					logits := r.Run(b)
					if i == 0 {
						worstLogit = max(worstLogit, compare(t, p.Name+" last logits", logits, f.floats(t, p.LastLogits), logitTol))
					}
					got := rig.Greedy(logits)
					if got != want {
						t.Fatalf("%s: greedy token %d is %d, want %d", p.Name, i, got, want)
					}
					diff := math.Abs(rig.Logprob(logits, got) - p.GreedyLogprobs[i])
					if diff > logprobTol {
						t.Errorf("%s: log-probability of greedy token %d is off by %g", p.Name, i, diff)
					}
					worstLogprob = max(worstLogprob, diff)
					tokens = []int32{got}
				}
			}
			t.Logf("worst error: logits %.2g, log-probabilities %.2g", worstLogit, worstLogprob)
		})
	}
}

// TestTrace compares everything inside one prompt: hidden states, router logits, picks and weights, final norm, all logits.
func TestTrace(t *testing.T) {
	for _, name := range rig.Tested() {
		t.Run(name, func(t *testing.T) {
			f, r := readFixture(t, name), rig.Load(t, name, 16)
			ids := map[int][]int32{}
			floats := map[deepseek.Point]map[int][]float32{}
			r.Model.Observe(func(p deepseek.Point, layer int, ten hal.Tensor) {
				if p == deepseek.RouterIDs {
					v := make([]int32, ten.Rows*ten.Cols)
					r.Model.Stream().GetInt32(v, ten)
					ids[layer] = v
					return
				}
				if floats[p] == nil {
					floats[p] = map[int][]float32{}
				}
				floats[p][layer] = r.Read(ten)
			})
			prompt := f.Prompts[f.Short.Prompt].IDs
			b := &nn.Batch{}
			r.Feed(b, r.Sequence(len(prompt)), prompt, true)
			compare(t, "logits", r.Run(b), f.floats(t, f.Short.Logits), logitTol)

			relative(t, "embedding", floats[deepseek.Embedding][0], f.floats(t, f.Short.Hidden[0]))
			for i, h := range f.Short.Hidden[1:] {
				relative(t, fmt.Sprintf("hidden state after layer %d", i), floats[deepseek.LayerOutput][i], f.floats(t, h))
			}
			relative(t, "final norm", floats[deepseek.FinalNorm][r.Config.NumLayers], f.floats(t, f.Short.FinalNorm))
			if len(f.Short.Router) == 0 || len(ids) != len(f.Short.Router) {
				t.Fatalf("router ran in layers %v, the fixture has %d", slices.Sorted(maps.Keys(ids)), len(f.Short.Router))
			}
			for layer, want := range f.Short.Router {
				relative(t, fmt.Sprintf("router logits of layer %d", layer), floats[deepseek.RouterLogits][layer], f.floats(t, want.Logits))
				routerPicks(t, layer, r.Config.NumExpertsPerTok, ids[layer], f.ints(t, want.IDs), floats[deepseek.RouterWeights][layer], f.floats(t, want.Weights))
			}
		})
	}
}

// routerPicks demands equal experts in equal order, except where two weights of a token are equal, and equal weights.
func routerPicks(t *testing.T, layer, k int, got, want []int32, gotW, wantW []float32) {
	t.Helper()
	if len(got) != len(want) || len(gotW) != len(wantW) {
		t.Fatalf("layer %d: %d picks, want %d", layer, len(got), len(want))
	}
	for i := range want {
		token := i / k * k
		if d := math.Abs(float64(gotW[i] - wantW[i])); d > weightTol*math.Abs(float64(wantW[i])) {
			t.Errorf("layer %d token %d: weight %d is %g, want %g", layer, i/k, i%k, gotW[i], wantW[i])
		}
		if got[i] == want[i] {
			continue
		}
		at := slices.Index(want[token:token+k], got[i])
		if at < 0 || wantW[token+at] != wantW[i] {
			t.Errorf("layer %d token %d: experts %v, want %v", layer, i/k, got[token:token+k], want[token:token+k])
		}
	}
}

// compare fails if a value is further off than tol and returns the largest difference.
func compare(t *testing.T, name string, got, want []float32, tol float64) float64 {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
	}
	worst := 0.0
	for i := range want {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if !(d <= tol) {
			t.Fatalf("%s: element %d is %g, want %g", name, i, got[i], want[i])
		}
		worst = max(worst, d)
	}
	return worst
}

// relative is compare with a tolerance relative to the tensor's root mean square.
func relative(t *testing.T, name string, got, want []float32) {
	t.Helper()
	sum := 0.0
	for _, v := range want {
		sum += float64(v) * float64(v)
	}
	compare(t, name, got, want, hiddenTol*math.Sqrt(sum/float64(len(want))))
}
