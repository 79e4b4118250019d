package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// TestDetokenizer pushes random ids, most of them parts of characters, and compares with decoding them at once.
func TestDetokenizer(t *testing.T) {
	rng := newRand(t)
	tok := loadTest(t)
	for range 5000 {
		ids := make([]int32, rng.IntN(12))
		for i := range ids {
			ids[i] = int32(rng.IntN(260)) // the first ids are special tokens and single bytes
			if rng.IntN(8) == 0 {
				ids[i] = int32(rng.IntN(tok.VocabSize()+20)) - 10
			}
		}
		checkPushes(t, tok, ids)
	}
}

// checkPushes fails unless the pushes give Decode of the whole, less an unfinished character at the end.
func checkPushes(t *testing.T, tok *Tokenizer, ids []int32) {
	t.Helper()
	for _, skip := range []bool{false, true} {
		d := NewDetokenizer(tok, skip)
		var got strings.Builder
		for _, id := range ids {
			part := d.Push(id)
			if !utf8.ValidString(part) {
				t.Fatalf("%v skip %v: Push(%d) = %q cuts a character", ids, skip, id, part)
			}
			got.WriteString(part)
		}
		want := tok.Decode(ids, skip)
		if len(d.pending) > 0 {
			var ok bool
			if want, ok = strings.CutSuffix(want, "\uFFFD"); !ok || len(d.pending) > 3 {
				t.Fatalf("%v skip %v: %d bytes pending, Decode ends in %q", ids, skip, len(d.pending), want)
			}
		}
		if got.String() != want {
			t.Fatalf("%v skip %v: pushed %q, want %q", ids, skip, got.String(), want)
		}
	}
}

func TestDetokenizerHoldsBack(t *testing.T) {
	tok := loadTest(t)
	ids := tok.Encode("😀!", false)
	d := NewDetokenizer(tok, true)
	var got []string
	for _, id := range ids {
		got = append(got, d.Push(id))
	}
	if want := []string{"", "", "", "😀", "!"}; !slices.Equal(got, want) {
		t.Errorf("pushes = %q, want %q", got, want)
	}
}

// TestMaximalSubparts has the examples of the Unicode standard, tables 3-8 to 3-11.
func TestMaximalSubparts(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82A", "????????A"},
		{"\xED\xA0\x80\xED\xBF\xBF\xED\xAFA", "????????A"},
		{"\xF4\x91\x92\x93\xFFA\x80\xBFB", "?????A??B"},
		{"\xE1\x80\xE2\xF0\x91\x92\xF1\xBFA", "????A"},
	} {
		got, used := appendChars(nil, []byte(c.in))
		if want := strings.ReplaceAll(c.want, "?", "\uFFFD"); string(got) != want || used != len(c.in) {
			t.Errorf("%x: %q (%d used), want %q", c.in, got, used, want)
		}
	}
}

// TestConcurrent encodes the same texts from many goroutines; the race detector watches the cache.
func TestConcurrent(t *testing.T) {
	rng := newRand(t)
	tok := loadTest(t)
	texts := make([]string, 200)
	want := make([][]int32, len(texts))
	for i := range texts {
		texts[i] = randomText(rng, 80)
		want[i] = tok.Encode(texts[i], true)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			order := rand.New(rand.NewPCG(uint64(w), 1)).Perm(len(texts))
			for _, i := range order {
				if got := tok.Encode(texts[i], true); !slices.Equal(got, want[i]) {
					t.Errorf("%q: %v, want %v", texts[i], got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

func TestCacheIsBounded(t *testing.T) {
	c := newWordCache()
	word := make([]byte, 4)
	for i := range cacheShards * cacheShardMax * 3 {
		word[0], word[1], word[2], word[3] = byte(i), byte(i>>8), byte(i>>16), 'x'
		c.put(string(word), []int32{int32(i)})
		if ids, ok := c.get(string(word)); !ok || ids[0] != int32(i) {
			t.Fatalf("word %d: got %v %v right after put", i, ids, ok)
		}
	}
	for i := range c.shards {
		if n := len(c.shards[i].words); n > cacheShardMax {
			t.Errorf("shard %d holds %d words, limit %d", i, n, cacheShardMax)
		}
	}
}
