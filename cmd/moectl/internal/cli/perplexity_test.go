package cli

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/weights"
)

// TestWindowsScoreEachTokenOnce tries all small cases.
func TestWindowsScoreEachTokenOnce(t *testing.T) {
	for lead := range 3 {
		for n := range 12 {
			for size := 2; size < 9; size++ {
				for stride := range 9 {
					list, err := windows(lead, n, size, stride)
					first := 0
					if lead == 0 {
						first = 1
					}
					if fits := size-lead-first >= max(1, stride) && n > first; fits != (err == nil) {
						t.Fatalf("windows(%d, %d, %d, %d): error %v, want one: %t", lead, n, size, stride, err, !fits)
					}
					if err == nil {
						checkWindows(t, list, lead, n, size, stride)
					}
				}
			}
		}
	}
}

func checkWindows(t *testing.T, list []window, lead, n, size, stride int) {
	t.Helper()
	next := 0
	if lead == 0 {
		next = 1 // nothing stands before the first
	}
	for i, w := range list {
		before := lead + w.scored - w.from // what the first scored token is given
		switch full := lead+w.to-w.from == size; {
		case w.scored != next || w.to <= w.scored || w.from < 0 || lead+w.to-w.from > size:
			t.Fatalf("windows(%d, %d, %d, %d): window %d is %+v, %d tokens were scored", lead, n, size, stride, i, w, next)
		case before < 1 || i > 0 && !full:
			t.Fatalf("windows(%d, %d, %d, %d): window %d is %+v: tokens lack what precedes them", lead, n, size, stride, i, w)
		case i > 0 && stride > 0 && w.to-w.scored != stride && w.to != n:
			t.Fatalf("windows(%d, %d, %d, %d): window %d is %+v", lead, n, size, stride, i, w)
		}
		next = w.to
	}
	if next != n {
		t.Fatalf("windows(%d, %d, %d, %d): %d tokens were scored", lead, n, size, stride, next)
	}
}

// reference is what these tests need of a fixture of test/models.
type reference struct {
	Prompts []struct {
		IDs            []int32   `json:"ids"`
		GreedyIDs      []int32   `json:"greedy_ids"`
		GreedyLogprobs []float64 `json:"greedy_logprobs"`
	} `json:"prompts"`
	Short struct {
		Prompt int    `json:"prompt"`
		Logits string `json:"logits"`
	} `json:"short"`
	logits []byte // (prompt, vocab) float32
}

const randomModels = "../../../../test/models/random"

func readReference(t *testing.T, model string) (r reference) {
	t.Helper()
	base := filepath.Join(randomModels, "fixtures", model)
	data, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(base + ".safetensors"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // tensors are read from directories
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	tensor, err := openWeights(t, dir).Tensor(r.Short.Logits, weights.Want{})
	if err != nil {
		t.Fatal(err)
	}
	r.logits = tensor.Data
	return r
}

func openWeights(t *testing.T, dir string) *weights.Checkpoint {
	t.Helper()
	c, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// logprobTolerance is that of test/models/README.md for one log-probability.
const logprobTolerance = 2e-4

// TestScoresAreTheReference compares sums of log-likelihoods with those of the reference implementation: of a short prompt by its
// logits at every position, and of greedy continuations by their log-probabilities.
func TestScoresAreTheReference(t *testing.T) {
	backend := Backend{Name: "cpu", Open: func(index int, c Compute) (hal.Device, error) {
		return cpu.Open(cpu.Options{Index: index, Threads: c.Threads, Off: c.KernelsOff})
	}}
	for _, model := range []string{"rnd-v3-yarn", "rnd-v2-group"} {
		ref := readReference(t, model)
		dir := filepath.Join(randomModels, model)
		c, err := modelconfig.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		files := &modelFiles{config: c, checkpoint: openWeights(t, dir)}
		score := func(what string, lead, tokens []int32, list []window, want float64) {
			t.Helper()
			told := 0
			got, err := scoreText(t.Context(), backend, Compute{}, files, lead, tokens, list, func(n int, _ likelihood) { told = n })
			if err != nil || told != len(list) {
				t.Fatalf("%s, %s: told of %d windows, %v", model, what, told, err)
			}
			if diff := math.Abs(got.nll - want); diff > logprobTolerance*float64(got.tokens) {
				t.Errorf("%s, %s: the log-likelihoods of %d tokens add up to %g, want %g", model, what, got.tokens, got.nll, want)
			}
		}

		short := ref.Prompts[ref.Short.Prompt].IDs
		want := 0.0
		for i, next := range short[1:] {
			want -= softmaxLog(ref.logits[4*i*c.VocabSize:][:4*c.VocabSize], int(next))
		}
		n := len(short)
		score("short", nil, short, []window{{from: 0, scored: 1, to: n}}, want)
		score("short, its first token before it", short[:1], short[1:], []window{{from: 0, scored: 0, to: n - 1}}, want)
		score("short, in two windows", nil, short, []window{{from: 0, scored: 1, to: n / 2}, {from: 0, scored: n / 2, to: n}}, want)

		for i, p := range ref.Prompts {
			want := 0.0
			for _, v := range p.GreedyLogprobs {
				want -= v
			}
			whole := append(p.IDs[:len(p.IDs):len(p.IDs)], p.GreedyIDs...)
			score("greedy "+string(rune('0'+i)), nil, whole, []window{{from: 0, scored: len(p.IDs), to: len(whole)}}, want)
		}
	}
}

// softmaxLog is the definition: ln(exp(x) / Σ exp(y)). // logits (vocab) float32
func softmaxLog(logits []byte, token int) float64 {
	at := func(i int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(logits[4*i:]))) }
	sum := 0.0
	for i := range len(logits) / 4 {
		sum += math.Exp(at(i))
	}
	return math.Log(math.Exp(at(token)) / sum)
}

// TestLogLikelihood: probabilities add up to 1, however large the logits.
func TestLogLikelihood(t *testing.T) {
	for _, logits := range [][]float32{{0}, {1, 2, 3}, {-1000, 1000, 999}, {5, 5, 5, 5}} {
		total := 0.0
		for i := range logits {
			total += math.Exp(logLikelihood(logits, int32(i)))
		}
		if math.Abs(total-1) > 1e-15 {
			t.Errorf("%v: probabilities add up to %g", logits, total)
		}
	}
	if got := logLikelihood([]float32{-1000, 1000, 999}, 0); math.Abs(got+2000.3132616875182) > 1e-9 { // −2000 − ln(1 + e⁻¹)
		t.Errorf("got %v", got)
	}
}

func TestPerplexityFlags(t *testing.T) {
	err := perplexityFlags{context: 1, stride: -1}.check()
	if err == nil || !strings.Contains(err.Error(), "--ctx-size 1") || !strings.Contains(err.Error(), "--stride -1") {
		t.Errorf("error %v", err)
	}
}
