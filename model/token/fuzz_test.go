package token

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// FuzzParse feeds both files; whatever they hold, parsing must end in a tokenizer that works or in an error.
func FuzzParse(f *testing.F) {
	f.Add(`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]}}`, `{"bos_token": {"content": "a"}}`)
	f.Add(`{"added_tokens": [{"id": 1, "content": "x"}], "normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "ByteLevel"},
		"decoder": {"type": "ByteLevel"}, "model": {"vocab": {}, "merges": [["a", "b"]]}}`, `null`)
	f.Add(`{"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed", "invert": true}]}}`, ``)
	f.Add(smallFile(f), `{"add_bos_token": true, "bos_token": "<s>"}`)
	f.Fuzz(func(t *testing.T, data, config string) {
		tok, err := parse([]byte(data), []byte(config))
		if err == nil {
			tok.Decode(tok.EncodePrompt("Hello  你好\n"), true)
		} else if !strings.Contains(err.Error(), tokenizerFile) && !strings.Contains(err.Error(), configFile) {
			t.Errorf("error names no file: %v", err)
		}
	})
}

// smallFile is a whole tokenizer.json of the 256 bytes and two more tokens.
func smallFile(f *testing.F) string {
	vocab := map[string]int{"he": 256}
	for b, r := range byteChars {
		vocab[string(r)] = b
	}
	return `{"added_tokens": [{"id": 257, "content": "<s>", "special": true, "normalized": true, "rstrip": true}], "normalizer": {"type": "NFC"},
		"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}, "decoder": {"type": "ByteLevel"},
		"model": {"type": "BPE", "merges": ["h e"], "vocab": ` + string(marshal(f, vocab)) + `}}`
}

// FuzzRoundTrip checks that decoding the ids of a text gives the text, at once and in pushes.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"", "Hello, world!", "x1y22 你好\r\n\t ", "<｜User｜>e\u0301<think>", "\xff\xf0\x9f", "a\u00a0\x00😀"} {
		f.Add(seed)
	}
	tok := loadTest(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(text, false)
		if got, want := tok.Decode(ids, false), strings.ToValidUTF8(text, "\uFFFD"); got != want {
			t.Errorf("%q → %v → %q", text, ids, got)
		}
		checkPushes(t, tok, ids)
	})
}

// BenchmarkEncode measures text of the test corpus, by hand-written scanners and by the regex engine.
func BenchmarkEncode(b *testing.B) {
	text := benchText(b)
	for _, way := range []string{"scanners", "engine", "scanners-cold"} {
		b.Run(way, func(b *testing.B) {
			tok := loadTest(b)
			if way == "engine" {
				for i, pattern := range []string{patternDigits, patternCJK, patternMain} {
					find, err := engineFinder(pattern)
					if err != nil {
						b.Fatal(err)
					}
					tok.words.steps[i] = splitStep(find, isolated, false)
				}
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if way == "scanners-cold" {
					tok.cache = newWordCache()
				}
				tok.Encode(text, true)
			}
		})
	}
}

// patternCL100K is the expression of OpenAI's cl100k_base as Llama 3's tokenizer.json writes it.
const patternCL100K = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// BenchmarkBacktracking measures the engine on texts that make published expressions backtrack. What it takes for a byte does
// not grow with the length of the text.
func BenchmarkBacktracking(b *testing.B) {
	for name, pattern := range map[string]string{"gpt2": patternGPT2, "cl100k": patternCL100K, "v3": patternMain} {
		find, err := engineFinder(pattern)
		if err != nil {
			b.Fatal(err)
		}
		for kind, unit := range map[string]string{"blanks": " ", "blank-runs": "  !", "tabs": "\t\u00a0", "marks": "\u0301", "long-runs": strings.Repeat(" ", 1000) + "x"} {
			for _, length := range []int{8_000, 80_000} {
				text := strings.Repeat(unit, length/len(unit))
				b.Run(fmt.Sprintf("%s/%s/%d", name, kind, length), func(b *testing.B) {
					b.SetBytes(int64(len(text)))
					for b.Loop() {
						find(text, func(int, int) {})
					}
				})
			}
		}
	}
}

// benchText is the sample of the test models' training text, repeated to about a megabyte.
func benchText(b *testing.B) string {
	b.Helper()
	data, err := os.ReadFile("../../test/models/sample.txt")
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat(string(data), 1+(1<<20)/len(data))
}
