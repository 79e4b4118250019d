package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// scripts are the characters the property tests mix: every class that the V3 expressions tell apart, and their neighbours.
var scripts = [][]rune{
	[]rune("abcxyzABCXYZ"), []rune("0123456789"), []rune("     "), []rune("\t\n\r\v\f"), []rune("\r\n"),
	[]rune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), []rune("一龥丁你好世界龦㐀"), []rune("ぁあゟ゠アヿ\u3040\u3100"), []rune("éßñЖяαΩ"),
	[]rune("\u0301\u0323\u20dd\u0903"), []rune("٣²½Ⅷ〇૩"), []rune("\u00a0\u2003\u3000\u0085\u2028\u1680"), []rune("\u200b\u200d\ufeff\u00ad\x00\x07\x1b\x7f"),
	[]rune("😀👍🏽🇺🇸"), []rune("«»“”‘’…—。、！€™©"), []rune("\ufffd\U0010FFFD\ue000\u0378"), []rune("한글नमस्तेمرحبا"),
}

func randomText(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		script := scripts[rng.IntN(len(scripts))]
		for range 1 + rng.IntN(4) {
			b.WriteRune(script[rng.IntN(len(script))])
		}
	}
	return b.String()
}

// newRand returns a generator whose seed is printed when the test fails.
func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestScannersEqualRegex compares the hand-written scanners with the expressions they stand for, alone and in the order of
// the pre-tokenizer.
func TestScannersEqualRegex(t *testing.T) {
	rng := newRand(t)
	var hand, engine preTokenizer
	for _, pattern := range []string{patternDigits, patternCJK, patternMain} {
		re, err := engineFinder(pattern)
		if err != nil {
			t.Fatal(err)
		}
		hand.steps = append(hand.steps, splitStep(scanners[pattern], isolated, false))
		engine.steps = append(engine.steps, splitStep(re, isolated, false))
		for range 3000 {
			text := randomText(rng, rng.IntN(60))
			if got, want := findSpans(scanners[pattern], text, false), findSpans(re, text, false); !slices.Equal(got, want) {
				t.Fatalf("%s on %q: scanner %v, engine %v", pattern, text, got, want)
			}
		}
	}
	for range 3000 {
		text := randomText(rng, rng.IntN(200))
		got, want := wordsOf(&hand, text), wordsOf(&engine, text)
		if !slices.Equal(got, want) {
			t.Fatalf("on %q: scanners %q, engine %q", text, got, want)
		}
		if strings.Join(got, "") != text {
			t.Fatalf("words of %q do not add up: %q", text, got)
		}
	}
}

func wordsOf(p *preTokenizer, text string) []string {
	var out []string
	p.each(text, func(w string) { out = append(out, w) })
	return out
}

// TestPublishedPatternIsScanned guards that the test tokenizer's expressions are the ones the scanners are keyed on.
func TestPublishedPatternIsScanned(t *testing.T) {
	data := string(patched(t, nil))
	for pattern := range scanners {
		if quoted := strings.Trim(string(marshal(t, pattern)), `"`); !strings.Contains(data, quoted) {
			t.Errorf("tokenizer.json does not have %s", quoted)
		}
	}
}

// TestMergeWays compares the scan with the heap on words of every length around the limit between them.
func TestMergeWays(t *testing.T) {
	rng := newRand(t)
	tok := loadTest(t)
	for n := 1; n <= scanMax; n++ {
		for range 40 {
			word := randomText(rng, n)[:n]
			if rng.IntN(3) == 0 {
				word = strings.Repeat(string("aeht "[rng.IntN(5)]), n)
			}
			scan, heap := tok.bpe.appendByScan(nil, word), tok.bpe.appendByHeap(nil, word)
			if !slices.Equal(scan, heap) {
				t.Fatalf("%q: scan %v, heap %v", word, scan, heap)
			}
		}
	}
}

// TestLongWord guards that one word of half a megabyte costs about n log n: quadratic work would take minutes.
func TestLongWord(t *testing.T) {
	tok := loadTest(t)
	for _, text := range []string{strings.Repeat("a", 1<<19), strings.Repeat(" ", 1<<18), strings.Repeat("ab\u0301", 1<<17)} {
		ids := tok.Encode(text, false)
		if tok.Decode(ids, false) != text {
			t.Errorf("%q…: does not decode to itself", text[:4])
		}
	}
}
