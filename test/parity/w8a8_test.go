package parity_test

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/token"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/test/rig"
	"github.com/moerack/moerack/topology"
)

var alone = topology.Place{TP: 1, EP: 1}

// TestPerplexity: in int8 the trained models are as sure of a text as in float32, within 1 %.
func TestPerplexity(t *testing.T) {
	if rig.Racing() {
		t.Skip("the race detector has nothing to find in one goroutine and takes minutes")
	}
	text, err := os.ReadFile(rig.Dir("sample.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tiny-v2lite", "tiny-v3"} {
		tokenizer, err := token.Load(rig.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		ids := tokenizer.Encode(string(text), false)
		stored := perplexity(rig.LoadForm(t, rig.Dir(name), alone, 16, weights.Stored), ids)
		got := perplexity(rig.LoadForm(t, rig.Dir(name), alone, 16, weights.Int8), ids)
		t.Logf("%s: perplexity %.4f in int8, %.4f as stored: %+.3f %%", name, got, stored, 100*(got/stored-1))
		if math.Abs(got/stored-1) > 0.01 {
			t.Errorf("%s: perplexity %.4f in int8, %.4f as stored: want within 1 %%", name, got, stored)
		}
	}
}

// windows are how many pieces of a text, of windowSize tokens behind a BOS, its perplexity is taken from.
const windows, windowSize = 16, 255

// perplexity is e to the mean negative log-probability of the tokens of a text in windows.
func perplexity(r *rig.Rig, ids []int32) float64 {
	r.Helper()
	if len(ids) < windows*windowSize {
		r.Fatalf("%d tokens are too few", len(ids))
	}
	sum, vocab := 0.0, r.Config.VocabSize
	for w := range windows {
		tokens := append([]int32{r.Config.BOSTokenID}, ids[w*len(ids)/windows:][:windowSize]...)
		b := &nn.Batch{}
		r.Feed(b, r.Sequence(len(tokens)), tokens[:windowSize], true)
		logits := r.Run(b)
		for i, next := range tokens[1:] {
			sum -= rig.Logprob(logits[i*vocab:(i+1)*vocab], next)
		}
	}
	return math.Exp(sum / (windows * windowSize))
}

// TestForms runs every model in BF16 and in int8: logits stay near those of the stored weights, int8 weights take half the bytes,
// and memory beside the files is what the estimate says.
func TestForms(t *testing.T) {
	for _, name := range rig.Tested() {
		stored := rig.Load(t, name, 16)
		prompt := tokens(40)
		run := func(r *rig.Rig) []float32 {
			b := &nn.Batch{}
			r.Feed(b, r.Sequence(len(prompt)), prompt, true)
			return r.Run(b)
		}
		want := run(stored)
		plain := name == "tiny-v2lite" || name == "tiny-v3" || name == "random/rnd-v2-group" || name == "random/rnd-v3-yarn"
		// BF16 keeps 8 bits of a weight, int8 of weight and input 7 of a row's largest. The trained models were off by 0.004 and
		// 0.02 when this was written, those of random weights, whose router chooses among nearly equal experts, by 0.01 and 0.12.
		limits := map[weights.Form]float64{weights.BFloat16: 0.02, weights.Int8: 0.05}
		if strings.HasPrefix(name, "random/") {
			limits[weights.Int8] = 0.25
		}
		for form, most := range limits {
			r := rig.LoadForm(t, rig.Dir(name), alone, 16, form)
			got := run(r)
			off := distance(got, want, r.Config.VocabSize)
			t.Logf("%s in %s: logits off by %.4f of their spread", name, form, off)
			if off > most || form == weights.Int8 && off == 0 {
				t.Errorf("%s in %s: logits off by %.4f of their spread, want at most %g, and not 0 in int8", name, form, off, most)
			}
			n, bytes := r.Files.Converted()
			if form == weights.BFloat16 && plain && (off != 0 || n != 0) {
				t.Errorf("%s: %d conversions of weights that are BF16, logits off by %g", name, n, off)
			}
			if estimate := deepseek.ConversionBytes(r.Config, r.Files, []topology.Place{alone}, form); bytes != estimate || form == weights.Int8 && bytes == 0 {
				t.Errorf("%s in %s: %d bytes of conversions, estimated %d", name, form, bytes, estimate)
			}
			if was, is := stored.Reader.Bytes(), r.Reader.Bytes(); form == weights.Int8 && plain && is > was*3/4 {
				t.Errorf("%s: %d bytes of weights in int8, %d as stored", name, is, was)
			}
		}
	}
}

// distance is how far the rows of logits are apart, as the median over the rows: that of a row is the root mean square of the
// differences over the standard deviation. A row whose token goes to another expert than before may be far off by itself.
func distance(got, want []float32, vocab int) float64 {
	var rows []float64
	for at := 0; at < len(want); at += vocab {
		mean, off, spread := 0.0, 0.0, 0.0
		for _, v := range want[at : at+vocab] {
			mean += float64(v) / float64(vocab)
		}
		for i, v := range want[at : at+vocab] {
			off += math.Pow(float64(got[at+i])-float64(v), 2)
			spread += math.Pow(float64(v)-mean, 2)
		}
		rows = append(rows, math.Sqrt(off/spread))
	}
	slices.Sort(rows)
	return rows[len(rows)/2]
}

// TestInt8Bits: a token's bits do not depend on its neighbours, chunks or pages in int8 either, nor on who holds which expert; and
// where heads and widths are cut they are near.
func TestInt8Bits(t *testing.T) {
	const name = "random/rnd-v3-yarn"
	prompt := tokens(40)
	r := rig.LoadForm(t, rig.Dir(name), alone, 16, weights.Int8)
	b := &nn.Batch{}
	r.Feed(b, r.Sequence(len(prompt)), prompt, true)
	want := r.Run(b)
	small := rig.LoadForm(t, rig.Dir(name), alone, 4, weights.Int8)
	s, other := small.Sequence(len(prompt)), small.Sequence(len(prompt))
	var got []float32
	for from := 0; from < len(prompt); from += 7 {
		piece := prompt[from:min(from+7, len(prompt))]
		b := &nn.Batch{}
		small.Feed(b, other, piece[:1], false)
		small.Feed(b, s, piece, true)
		got = append(got, small.Run(b)[small.Config.VocabSize:]...)
	}
	if !slices.Equal(got, want) {
		t.Error("in chunks beside another sequence the logits have other bits")
	}
	for _, l := range []topology.Layout{
		{DataParallel: 2, TensorParallel: 1, ExpertParallel: true},
		{DataParallel: 1, TensorParallel: 2},
		{DataParallel: 1, TensorParallel: 2, ExpertParallel: true},
	} {
		k := rig.LoadRack(t, rig.RackOptions{Dir: rig.Dir(name), Layout: l, Form: weights.Int8})
		batches := make([]*nn.Batch, l.DataParallel)
		for e := range batches {
			batches[e] = &nn.Batch{}
		}
		k.Engine(0).Feed(batches[0], k.Engine(0).Sequence(len(prompt)), prompt, true)
		got := k.Step(batches)[0].Logits
		off := distance(got, want, r.Config.VocabSize)
		t.Logf("%+v: off by %.4f", l, off)
		if l.TensorParallel == 1 && !slices.Equal(got, want) || off > 0.1 {
			t.Errorf("%+v: logits off by %.4f of their spread", l, off)
		}
	}
}
