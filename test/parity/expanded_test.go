package parity_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/kernels/simd"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/test/rig"
)

// TestExpanded: prompts in the expanded form give the logits of the absorbed one within rounding, in any form of the weights, and the same
// bits whatever the chunks, the pages, the company and the threads.
func TestExpanded(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 0))
	for _, name := range quick() {
		for _, form := range forms {
			absorbed := rig.LoadForm(t, rig.Dir(name), alone, 16, form)
			vocab := absorbed.Config.VocabSize
			prompt := randomTokens(g, 150, vocab)
			near := inChunks(absorbed, prompt, len(prompt))
			r := rig.LoadExpanded(t, cpu.Options{}, rig.Dir(name), alone, 16, form)
			want := inChunks(r, prompt, len(prompt))
			most := 2e-3
			if form == weights.Int8 { // values are made of other rows in int8
				most = 0.15
			}
			if off := distance(want, near, vocab); off == 0 || off > most {
				t.Errorf("%s in %s: logits off by %g of their spread, want %g at most, and not 0", name, form, off, most)
			}
			for blockSize, chunks := range map[int][]int{4: {1, 64}, 64: {7}} {
				r := rig.LoadExpanded(t, cpu.Options{Threads: 3}, rig.Dir(name), alone, blockSize, form)
				for _, chunk := range chunks {
					sameBits(t, fmt.Sprintf("%s in %s, blocks of %d, chunks of %d", name, form, blockSize, chunk), inChunks(r, prompt, chunk), want)
				}
				sameBits(t, fmt.Sprintf("%s in %s, blocks of %d, in company", name, form, blockSize), inCompany(r, g, prompt), want[len(want)-vocab:])
			}
		}
	}
}

// TestExpandedBesideDecode: in one step rows that continue an answer have the bits of the absorbed form, and rows of a prompt those of the
// expanded one; the count tells how many the latter are. Neither allocates.
func TestExpandedBesideDecode(t *testing.T) {
	for _, name := range quick() {
		for _, o := range []cpu.Options{{Threads: 2}, {Off: simd.Names()}} {
			r := rig.LoadExpanded(t, o, rig.Dir(name), alone, 16, forms[0])
			plain := rig.LoadOn(t, o, rig.Dir(name), alone, 16, forms[0])
			answer, vocab := tokens(80), r.Config.VocabSize
			s, p := r.Sequence(100), plain.Sequence(100)
			feed := func(r *rig.Rig, s *rig.Sequence, ids []int32, decode bool) *nn.Batch {
				b := &nn.Batch{}
				r.Feed(b, s, ids, true)
				if decode {
					b.Decode = b.Rows()
				}
				return b
			}
			sameBits(t, name+": a step of decode rows", r.Run(feed(r, s, answer, true)), plain.Run(feed(plain, p, answer, false)))
			prompt := tokens(70)[3:]
			want := inChunks(r, prompt, len(prompt))
			mixed := feed(r, s, answer[:1], true)
			r.Feed(mixed, r.Sequence(len(prompt)), prompt, true)
			mixed.Pad(mixed.Rows() + 3)
			out, err := r.Step(mixed)
			if err != nil {
				t.Fatal(err)
			}
			if out.Expanded != len(prompt) {
				t.Errorf("%s: %d rows in the expanded form, want %d", name, out.Expanded, len(prompt))
			}
			sameBits(t, name+": the decode row", out.Logits[:vocab], plain.Run(feed(plain, p, answer[:1], false)))
			sameBits(t, name+": the prompt", out.Logits[vocab:], want)
			if n := testing.AllocsPerRun(5, func() {
				if _, err := r.Step(mixed); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s, %+v: %g allocations per step", name, o, n)
			}
		}
	}
}
