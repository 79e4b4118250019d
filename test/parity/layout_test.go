package parity_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/test/rig"
	"github.com/moerack/moerack/topology"
)

// layouts are those that TestLayouts tries, as far as they fit a model.
var layouts = []topology.Layout{
	{DataParallel: 1, TensorParallel: 1, ExpertParallel: true},
	{DataParallel: 2, TensorParallel: 1},
	{DataParallel: 2, TensorParallel: 1, ExpertParallel: true},
	{DataParallel: 4, TensorParallel: 1},
	{DataParallel: 4, TensorParallel: 1, ExpertParallel: true},
	{DataParallel: 1, TensorParallel: 2},
	{DataParallel: 2, TensorParallel: 2},
	{DataParallel: 1, TensorParallel: 2, ExpertParallel: true},
	{DataParallel: 2, TensorParallel: 2, ExpertParallel: true},
	{DataParallel: 4, TensorParallel: 2, ExpertParallel: true},
	{DataParallel: 1, TensorParallel: 4},
	{DataParallel: 2, TensorParallel: 4},
	{DataParallel: 1, TensorParallel: 4, ExpertParallel: true},
	{DataParallel: 2, TensorParallel: 4, ExpertParallel: true},
}

func dims(c *config.Config) topology.Dims {
	return topology.Dims{
		Heads: c.NumHeads, Experts: c.NumRoutedExperts, DenseWidth: c.IntermediateSize, ExpertWidth: c.MoEIntermediateSize,
		SharedWidth: c.MoEIntermediateSize * c.NumSharedExperts, Vocab: c.VocabSize,
	}
}

// TestLayouts plays the greedy continuations of every fixture in every layout, the prompts spread over the engines, of which one may
// have none. Without tensor parallelism the logits have the bits of one rank alone; with it, those of every other layout with as many
// TP ranks and expert parallelism on or off as here, and stay within the fixtures' tolerances.
func TestLayouts(t *testing.T) {
	for _, name := range rig.Tested() {
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, name)
			if rig.Racing() {
				for p := range f.Prompts {
					f.Prompts[p].GreedyIDs = f.Prompts[p].GreedyIDs[:8]
				}
			}
			bits := map[topology.Layout][][][]float32{{TensorParallel: 1}: aloneLogits(t, f, rig.Load(t, name, 16))}
			cfg, err := config.Load(rig.Dir(name))
			if err != nil {
				t.Fatal(err)
			}
			tried := 0
			for _, l := range layouts {
				if l.Validate(dims(cfg)) != nil {
					continue
				}
				tried++
				t.Run(fmt.Sprintf("dp%d tp%d ep=%v", l.DataParallel, l.TensorParallel, l.ExpertParallel), func(t *testing.T) {
					got := play(t, f, rig.LoadRack(t, rig.RackOptions{Dir: rig.Dir(name), Layout: l}))
					kind := topology.Layout{TensorParallel: l.TensorParallel, ExpertParallel: l.ExpertParallel && l.TensorParallel > 1}
					want, ok := bits[kind]
					if !ok {
						bits[kind] = got
						withinTolerance(t, f, got)
						return
					}
					for p := range want {
						for i := range want[p] {
							sameBits(t, fmt.Sprintf("%s, greedy token %d", f.Prompts[p].Name, i), got[p][i], want[p][i])
						}
					}
				})
			}
			if least := 5; tried < least {
				t.Errorf("only %d layouts fit the model, want %d at least", tried, least)
			}
		})
	}
}

// aloneLogits plays each prompt by itself on one rank. // (prompts, tokens) of (vocab)
func aloneLogits(t *testing.T, f *fixture, r *rig.Rig) [][][]float32 {
	t.Helper()
	all := make([][][]float32, len(f.Prompts))
	for p, prompt := range f.Prompts {
		s, tokens := r.Sequence(len(prompt.IDs)+len(prompt.GreedyIDs)), prompt.IDs
		for _, next := range prompt.GreedyIDs {
			b := &nn.Batch{}
			r.Feed(b, s, tokens, false)
			all[p] = append(all[p], r.Run(b))
			tokens = []int32{next}
		}
	}
	return all
}

// course is a prompt under way on an engine.
type course struct {
	prompt int
	seq    *rig.Sequence
	next   []int32 // tokens to feed
	made   [][]float32
}

// play runs all prompts of a fixture on a rack, those of an engine in one batch. Engine e begins e steps late, so that steps differ in
// rows; of four engines the last has no prompt. It fails when a greedy token is not the fixture's. // (prompts, tokens) of (vocab)
func play(t *testing.T, f *fixture, k *rig.Rack) [][][]float32 {
	t.Helper()
	engines := k.Layout.DataParallel
	all := make([]*course, len(f.Prompts))
	of := make([][]*course, engines)
	for p, prompt := range f.Prompts {
		e := p % min(engines, 3)
		all[p] = &course{prompt: p, seq: k.Engine(e).Sequence(len(prompt.IDs) + len(prompt.GreedyIDs)), next: prompt.IDs}
		of[e] = append(of[e], all[p])
	}
	for turn := 0; ; turn++ {
		batches, fed, busy := make([]*nn.Batch, engines), make([][]*course, engines), false
		for e := range batches {
			batches[e] = &nn.Batch{}
			for _, c := range of[e] {
				if len(c.made) == len(f.Prompts[c.prompt].GreedyIDs) {
					continue
				}
				busy = true
				if turn >= e {
					k.Engine(e).Feed(batches[e], c.seq, c.next, false)
					fed[e] = append(fed[e], c)
				}
			}
		}
		if !busy {
			break
		}
		for e, out := range k.Step(batches) {
			for i, c := range fed[e] {
				if out.BadLayer[i] >= 0 {
					t.Fatalf("%s: output of layer %d is not finite", f.Prompts[c.prompt].Name, out.BadLayer[i])
				}
				c.take(t, f, out.Logits[i*k.Ranks[0].Config.VocabSize:][:k.Ranks[0].Config.VocabSize])
			}
		}
	}
	logits := make([][][]float32, len(all))
	for p, c := range all {
		logits[p] = c.made
	}
	return logits
}

// take notes the logits of a step and chooses the next token.
func (c *course) take(t *testing.T, f *fixture, logits []float32) {
	t.Helper()
	p := f.Prompts[c.prompt]
	got := rig.Greedy(logits)
	if want := p.GreedyIDs[len(c.made)]; got != want {
		t.Fatalf("%s: greedy token %d is %d, want %d", p.Name, len(c.made), got, want)
	}
	c.made, c.next = append(c.made, logits), []int32{got}
}

// withinTolerance compares with the fixture's own numbers.
func withinTolerance(t *testing.T, f *fixture, got [][][]float32) {
	t.Helper()
	worst := 0.0
	for p, prompt := range f.Prompts {
		compare(t, prompt.Name+" last logits", got[p][0], f.floats(t, prompt.LastLogits), logitTol)
		for i, want := range prompt.GreedyIDs {
			diff := math.Abs(rig.Logprob(got[p][i], want) - prompt.GreedyLogprobs[i])
			if diff > logprobTol {
				t.Errorf("%s: log-probability of greedy token %d is off by %g", prompt.Name, i, diff)
			}
			worst = max(worst, diff)
		}
	}
	t.Logf("worst error of log-probabilities %.2g", worst)
}
