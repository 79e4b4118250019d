package token

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	tok := loadTest(t)
	if tok.bos != 0 {
		t.Errorf("BOS %d, want 0", tok.bos)
	}
	if n := tok.VocabSize(); n != 2048 {
		t.Errorf("VocabSize = %d, want 2048", n)
	}
	// test/models/README.md: only ids 0, 1, 2 and 2047 are special.
	for id, special := range tok.special {
		if want := id <= 2 || id == 2047; special != want {
			t.Errorf("token %d: special %v", id, special)
		}
	}
	if tok.Piece(-1) != "" || tok.Piece(2048) != "" {
		t.Error("Piece names ids outside the vocabulary")
	}
}

func TestEncodePrompt(t *testing.T) {
	tok := loadTest(t)
	const bos = "<｜begin▁of▁sentence｜>"
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"", []int32{0}},
		{"H", []int32{0, 42}},
		{bos, []int32{0}},
		{bos + "H", []int32{0, 42}},
		{bos + bos + "H", []int32{0, 0, 42}},
		{"H" + bos, []int32{0, 42, 0}},
	} {
		if got := tok.EncodePrompt(c.text); !slices.Equal(got, c.want) {
			t.Errorf("EncodePrompt(%q) = %v, want %v", c.text, got, c.want)
		}
	}
	if got := tok.Encode(bos+"H", true); !slices.Equal(got, []int32{0, 0, 42}) {
		t.Errorf("Encode adds BOS whatever the text: got %v", got)
	}
}

func TestSpecialRules(t *testing.T) {
	const named = `"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": {"content": "<｜end▁of▁sentence｜>"}`
	const template = `{"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing", "single":
		[{"SpecialToken": {"id": "<｜begin▁of▁sentence｜>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<|EOT|>"}}]}]}`
	for _, c := range []struct {
		name, config, post string
		want               []int32
	}{
		{"nothing said", `{` + named + `}`, `null`, []int32{42}},
		{"both", `{` + named + `, "add_bos_token": true, "add_eos_token": true}`, `null`, []int32{0, 42, 1}},
		{"template", `{` + named + `}`, template, []int32{0, 42, 2047}},
		{"configuration leads", `{` + named + `, "add_bos_token": false, "add_eos_token": true}`, template, []int32{42, 1}},
		{"no configuration", ``, template, []int32{0, 42, 2047}},
	} {
		var config []byte
		if c.config != "" {
			config = []byte(c.config)
		}
		tok, err := parse(patched(t, map[string]json.RawMessage{"post_processor": json.RawMessage(c.post)}), config)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := tok.Encode("H", true); !slices.Equal(got, c.want) {
			t.Errorf("%s: Encode = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNoTokenizer(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"", "prompts must be token ids"},
		{"tiktoken.model", "convert it to tokenizer.json"},
		{"qwen.tiktoken", "convert it to tokenizer.json"},
		{"tokenizer.model", "SentencePiece"},
	} {
		dir := t.TempDir()
		if c.file != "" {
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte("IQ== 0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load(dir)
		if !errors.Is(err, ErrNoTokenizer) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("with %q: %v, want ErrNoTokenizer with %q", c.file, err, c.want)
		}
	}
	_, err := Load(filepath.Join(t.TempDir(), "absent"))
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoTokenizer) {
		t.Errorf("absent directory: %v", err)
	}
}

// TestRefusals has one bad item each; the error must name the file and the item.
func TestRefusals(t *testing.T) {
	split := func(pattern string) string {
		return `{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ` + pattern + `}, "behavior": "Isolated"}, {"type": "ByteLevel"}]}`
	}
	for _, c := range []struct{ key, val, want string }{
		{"normalizer", `{"type": "NFKD"}`, `normalizer: type "NFKD" is not supported`},
		{"normalizer", `{"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}`, `"Lowercase"`},
		{"pre_tokenizer", `null`, "pre_tokenizer is missing"},
		{"pre_tokenizer", `{"type": "Metaspace"}`, "last step is not ByteLevel"},
		{"pre_tokenizer", `{"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "ByteLevel"}]}`, `step 1 of 2: type "Whitespace"`},
		{"pre_tokenizer", `{"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "ByteLevel"}]}`, "only as the last step"},
		{"pre_tokenizer", strings.Replace(split(`"a"`), "Isolated", "Sideways", 1), `behavior "Sideways"`},
		{"pre_tokenizer", strings.Replace(split(`"a"`), "Regex", "Glob", 1), "either Regex or String"},
		{"pre_tokenizer", split(`"[a-z"`), `pattern "[a-z"`},
		{"pre_tokenizer", split(`"[\\p{L}&&[^\\p{Han}]]+"`), `"&&" is not supported`},
		{"pre_tokenizer", split(`"[[:alpha:]]+"`), `"[[:alpha:]" is not supported`},
		{"decoder", `{"type": "Metaspace"}`, `decoder: type "Metaspace"`},
		{"decoder", `null`, "decoder is missing"},
		{"post_processor", `{"type": "BertProcessing"}`, `post_processor: type "BertProcessing"`},
		{"post_processor", `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {}}]}`, `"[CLS]" is not in the vocabulary`},
		{"post_processor", `{"type": "TemplateProcessing", "single": []}`, "0 times instead of once"},
		{"model.type", `"Unigram"`, `model.type "Unigram"`},
		{"model.dropout", `0.1`, "model.dropout 0.1"},
		{"model.byte_fallback", `true`, "model.byte_fallback true"},
		{"model.end_of_word_suffix", `"</w>"`, `"</w>"`},
		{"model.continuing_subword_prefix", `"##"`, `"##"`},
		{"model.merges", `["a"]`, `merges[0]: "a" is not two tokens`},
		{"model.merges", `["a b c"]`, `merges[0]: "a b c" is not two tokens`},
		{"model.merges", `[["h", "e"], ["a"]]`, "merges[1]: has 1 tokens"},
		{"model.merges", `["h e", "nothing e"]`, `model.merges[1]: "nothing" is not in the vocabulary`},
		{"model.merges", `["h e", "e h", "ö h", "h e"]`, `model.merges[3]: "h" "e" was already merge 0`},
		{"model.vocab", `{"a": -1}`, `"a" has id -1`},
		{"model.vocab", `{"a": 99999999999}`, `"a" has id 99999999999, outside 0 to 2097151`},
		{"model.vocab", `{"a": 1.5}`, "1.5"},
		{"model.vocab", `{"a": 7, "b": 7}`, `id 7 is both "a" and "b"`},
		{"model.vocab", `{"": 7}`, "empty text"},
		{"model.vocab", `{"a": 7}`, "no token for byte 0x00"},
		{"added_tokens", `[{"id": 5, "content": "<x>"}]`, `added_tokens[0]: id 5 is both`},
		{"added_tokens", `[{"id": 3000, "content": "he"}]`, `added_tokens[0]: "he" has id 3000, but also id`},
		{"added_tokens", `[{"id": -4, "content": "<x>"}]`, `added_tokens[0]: "<x>" has id -4`},
		{"added_tokens", `[{"id": 3000, "content": ""}]`, "empty text"},
	} {
		_, err := parse(patched(t, map[string]json.RawMessage{c.key: json.RawMessage(c.val)}), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), tokenizerFile) {
			t.Errorf("%s = %s: error %v, want one with %q and the file", c.key, c.val, err, c.want)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := parse(patched(t, map[string]json.RawMessage{
		"normalizer": json.RawMessage(`{"type": "NFKC"}`), "decoder": json.RawMessage(`{"type": "Fuse"}`), "model.byte_fallback": json.RawMessage(`true`),
	}), nil)
	for _, want := range []string{"NFKC", "Fuse", "byte_fallback"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s: %v", want, err)
		}
	}
	many := json.RawMessage(`["q0 e","q1 e","q2 e","q3 e","q4 e","q5 e","q6 e","q7 e","q8 e","q9 e"]`)
	_, err = parse(patched(t, map[string]json.RawMessage{"model.merges": many}), nil)
	if err == nil || !strings.Contains(err.Error(), "and 2 more") {
		t.Errorf("ten faults: %v", err)
	}
}

func TestBrokenFiles(t *testing.T) {
	whole := patched(t, nil)
	for _, c := range []struct {
		name, data, config, want string
	}{
		{"cut", string(whole[:len(whole)/2]), "{}", "download cut?"},
		{"empty", "", "{}", "download cut?"},
		{"not JSON", "hello", "{}", "tokenizer.json: invalid character"},
		{"no model", "{}", "{}", "model is missing"},
		{"config not JSON", string(whole), "{", "tokenizer_config.json"},
		{"unknown BOS", string(whole), `{"bos_token": "<s>"}`, `bos_token: "<s>" is not in the vocabulary`},
		{"BOS of a wrong type", string(whole), `{"bos_token": 7}`, "string or an object"},
		{"BOS not named", string(whole), `{"add_bos_token": true}`, "add_bos_token is true but"},
		{"other decoder table", string(whole), `{"added_tokens_decoder": {"5": {"content": "<x>"}}}`, `added_tokens_decoder["5"]`},
	} {
		_, err := parse([]byte(c.data), []byte(c.config))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestDanglingLink: a file that was meant to be there is no absent file: without its configuration prompts would lose their BOS
// in silence.
func TestDanglingLink(t *testing.T) {
	for _, name := range []string{tokenizerFile, configFile} {
		dir := t.TempDir()
		data, err := os.ReadFile(filepath.Join("..", "..", "test", "models", "tokenizer", tokenizerFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tokenizerFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, name)), os.Symlink("gone", filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || errors.Is(err, ErrNoTokenizer) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: %v, want an error that names the link", name, err)
		}
	}
}
