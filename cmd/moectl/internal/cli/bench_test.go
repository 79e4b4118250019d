package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/weights"
)

// TestDecodeWindow: it opens with the last first token and is over when each sequence has its tokens after that, in whatever
// order those of a step come.
func TestDecodeWindow(t *testing.T) {
	start := time.Unix(0, 0)
	w := newDecodeWindow(3, 2)
	for i, step := range []struct {
		sequence, tokens int
		open, over       bool
	}{
		{0, 1, false, false},
		{1, 1, false, false},
		{0, 1, false, false},
		{1, 0, false, false}, // a chunk without a token
		{2, 1, true, false},
		{0, 1, true, false},
		{1, 1, true, false}, // the step that opens it
		{0, 1, true, false},
		{1, 2, true, false},
		{2, 1, true, false}, // two tokens at once
		{1, 1, true, false},
		{2, 0, true, false},
		{0, 1, true, false}, // all but one have theirs
		{2, 1, true, true},
	} {
		w.take(sighting{sequence: step.sequence, tokens: step.tokens, at: start.Add(time.Duration(i))})
		if w.open() != step.open || w.over() != step.over {
			t.Fatalf("sighting %d %+v: open %t, over %t", i, step, w.open(), w.over())
		}
	}
	if first, last := w.first.Sub(start), w.last.Sub(start); first != 4 || last != 13 {
		t.Errorf("the window is from sighting %d to %d, want 4 to 13", first, last)
	}
}

func TestDistinctExperts(t *testing.T) {
	even := map[int]int64{0: 5, 1: 5, 2: 5, 3: 5}
	for _, tt := range []struct {
		name         string
		picks, batch int
		rows         map[int]int64
		want         float64
	}{
		{"one row reads what it picks", 2, 1, map[int]int64{0: 90, 1: 6, 2: 4, 3: 100}, 2},
		{"two rows", 1, 2, even, 4 * (1 - 0.75*0.75)},
		{"many rows read all", 2, 1000, even, 4},
		{"those that nobody picks are not read", 1, 1000, map[int]int64{0: 7, 1: 7, 2: 0}, 2},
		{"every row picks the same", 2, 8, map[int]int64{0: 80, 1: 80}, 2},
		{"no experts", 0, 4, nil, 0},
	} {
		if got := distinct(tt.picks, tt.batch, tt.rows); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestReadLoop(t *testing.T) {
	for _, lines := range []int{0, 7, 8, 16, 17, 40} {
		words := make([]uint64, lines*lineWords)
		want := uint64(0)
		for i := range words {
			words[i] = uint64(i*i + 1)
			if i%lineWords == 0 && i < lines/8*8*lineWords {
				want += words[i]
			}
		}
		if got := sumLines(words); got != want {
			t.Errorf("%d lines: %d, want %d", lines, got, want)
		}
	}
	part := slices.Repeat([]uint64{1}, 8*lineWords)
	l := &readLoop{parts: [][]uint64{part, part}}
	if speeds := l.speeds([]float64{1}); len(speeds) != 1+readPasses || slices.Min(speeds) <= 0 || l.sum.Load() != 2*8*readPasses {
		t.Errorf("speeds %v, sum %d", speeds, l.sum.Load())
	}
}

func TestMedian(t *testing.T) {
	if a, b := median([]float64{9, 1, 4}), median([]float64{9, 1, 4, 5}); a != 4 || b != 4.5 {
		t.Errorf("medians %v and %v, want 4 and 4.5", a, b)
	}
}

// TestBenchCountsBytes: one sequence reads all tensors of the checkpoint but for experts that no row is routed to and all but one
// row of the embedding, and the KV cache.
func TestBenchCountsBytes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := "../../../../test/models/tiny-v2lite"
	c, err := modelconfig.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := checkpoint.Close(); err != nil {
			t.Error(err)
		}
	}()
	total := 0
	for _, name := range checkpoint.Names() {
		tensor, err := checkpoint.Tensor(name, weights.Want{})
		if err != nil {
			t.Fatal(err)
		}
		total += len(tensor.Data)
	}
	moe := c.NumLayers - c.FirstKDenseReplace
	unread := 2*c.HiddenSize*(c.VocabSize-1) + moe*(c.NumRoutedExperts-c.NumExpertsPerTok)*3*2*c.HiddenSize*c.MoEIntermediateSize
	const prompt, gen = 20, 6
	cache := (prompt + gen/2) * c.NumLayers * (c.KVLoraRank + c.QKRopeHeadDim) * 4
	want := float64(total - unread + cache)

	var out, errs bytes.Buffer
	args := []string{"bench", "engine", "--model", dir, "--prompt-len", "20", "--gen-len", "6", "--batch", "1,3", "--repeat", "2", "--log-level", "error", "-o", "json"}
	if code := Run(host(&out, &errs, args...)); code != 0 {
		t.Fatalf("exit code %d, stderr %q", code, errs.String())
	}
	var r benchReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Results) != 2 {
		t.Fatalf("%s: %v", out.String(), err)
	}
	one, three := r.Results[0], r.Results[1]
	if math.Abs(one.BytesPerToken-want) > 0.5 {
		t.Errorf("one sequence: %v bytes a token, want %v", one.BytesPerToken, want)
	}
	if low := want / 3; three.BytesPerToken <= low || three.BytesPerToken >= want {
		t.Errorf("three sequences: %v bytes a token, want between %v and %v", three.BytesPerToken, low, want)
	}
	for i, m := range r.Results {
		if m.Batch != 1+2*i || m.Prefill <= 0 || m.Decode <= 0 || math.Abs(m.BandwidthShare*r.ReadBandwidth/(m.Decode*m.BytesPerToken)-1) > 1e-9 {
			t.Errorf("result %+v with a read bandwidth of %v", m, r.ReadBandwidth)
		}
	}
}
