package parity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/test/rig"
)

// TestSameBits: logits of a prompt and of the steps after it have the same bits whatever the page size, the chunks, the company in
// the batch and the padding.
func TestSameBits(t *testing.T) {
	for _, name := range rig.Tested() {
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, name)
			long := f.Prompts[len(f.Prompts)-1].IDs
			prompt := long[:min(len(long), 150)] // more than two attention tiles
			want := inChunks(rig.Load(t, name, 16), prompt, len(prompt))
			for _, blockSize := range []int{1, 4, 64} {
				r := rig.Load(t, name, blockSize)
				for _, chunk := range []int{1, 7, 64} {
					sameBits(t, fmt.Sprintf("blocks of %d, chunks of %d", blockSize, chunk), inChunks(r, prompt, chunk), want)
				}
			}
			r := rig.Load(t, name, 16)
			const seed = 3
			t.Logf("seed %d", seed)
			g := rand.New(rand.NewPCG(seed, 0))
			for range 4 {
				sameBits(t, "in company", inCompany(r, g, prompt), want[len(want)-r.Config.VocabSize:])
			}
		})
	}
}

// TestSameBitsOnThreads: nor do bits depend on the number of threads, in any form of the weights: batches of random company, chunks and
// pages on 2, 3 and 7 threads, against the prompt by itself on one.
func TestSameBitsOnThreads(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEED=%d gives the same batches", seed)
	g := rand.New(rand.NewPCG(seed, 0))
	for _, name := range quick() {
		for _, form := range forms {
			r := rig.LoadForm(t, rig.Dir(name), alone, 16, form)
			prompt := randomTokens(g, 70+g.IntN(80), r.Config.VocabSize)
			want := inChunks(r, prompt, len(prompt))
			want = want[len(want)-r.Config.VocabSize:]
			for _, threads := range []int{2, 3, 7} {
				blockSize := 4 << (2 * g.IntN(3))
				r := rig.LoadOn(t, cpu.Options{Threads: threads}, rig.Dir(name), alone, blockSize, form)
				sameBits(t, fmt.Sprintf("%s in %s on %d threads, blocks of %d", name, form, threads, blockSize), inCompany(r, g, prompt), want)
			}
		}
	}
}

// inChunks feeds a prompt in chunks and returns the logits of all its rows.
func inChunks(r *rig.Rig, prompt []int32, chunk int) []float32 {
	s := r.Sequence(len(prompt))
	var all []float32
	for c := range slices.Chunk(prompt, chunk) {
		b := &nn.Batch{}
		r.Feed(b, s, c, true)
		all = append(all, r.Run(b)...)
	}
	return all
}

// inCompany feeds a prompt in random pieces, beside other sequences and padding rows, whose KV slot is none and whose results
// nobody reads. It returns the logits of the last row.
func inCompany(r *rig.Rig, g *rand.Rand, prompt []int32) []float32 {
	s, other := r.Sequence(len(prompt)), r.Sequence(200)
	for {
		b := &nn.Batch{}
		if other.Length < 180 && g.IntN(2) == 0 {
			r.Feed(b, other, randomTokens(g, 1+g.IntN(4), r.Config.VocabSize), true)
		}
		n := min(1+g.IntN(60), len(prompt)-s.Length)
		r.Feed(b, s, prompt[s.Length:s.Length+n], false)
		mine := len(b.Samples) - 1
		if other.Length < 180 && g.IntN(2) == 0 {
			third := r.Sequence(8)
			r.Feed(b, third, randomTokens(g, 5, r.Config.VocabSize), false)
		}
		b.Pad(b.Rows() + g.IntN(5))
		logits := r.Run(b)
		if s.Length == len(prompt) {
			return logits[mine*r.Config.VocabSize:][:r.Config.VocabSize]
		}
	}
}

func randomTokens(g *rand.Rand, n, vocab int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(g.IntN(vocab))
	}
	return v
}

func sameBits(t *testing.T, name string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d logits, want %d", name, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: logit %d is %g, want exactly %g", name, i, got[i], want[i])
		}
	}
}
