package token

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const modelDir = "../../test/models/tokenizer"

func loadTest(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Load(modelDir)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestFixtures compares with what Hugging Face tokenizers gave for the test tokenizer (test/models/recipe).
func TestFixtures(t *testing.T) {
	var fx struct {
		Encode []struct {
			Text           string   `json:"text"`
			IDs            []int32  `json:"ids"`
			IDsWithSpecial []int32  `json:"ids_with_special"`
			Tokens         []string `json:"tokens"`
			Decoded        string   `json:"decoded"`
			DecodedSkip    string   `json:"decoded_skip_special"`
		} `json:"encode"`
		Decode []struct {
			IDs         []int32 `json:"ids"`
			Decoded     string  `json:"decoded"`
			DecodedSkip string  `json:"decoded_skip_special"`
		} `json:"decode"`
	}
	readJSON(t, "../../test/models/fixtures/tokenizer_cases.json", &fx)
	if len(fx.Encode) < 60 || len(fx.Decode) < 20 {
		t.Fatalf("fixture has only %d and %d cases", len(fx.Encode), len(fx.Decode))
	}
	tok := loadTest(t)
	for _, c := range fx.Encode {
		if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
			t.Errorf("Encode(%q, false) = %v, want %v", c.Text, got, c.IDs)
		}
		if got := tok.Encode(c.Text, true); !slices.Equal(got, c.IDsWithSpecial) {
			t.Errorf("Encode(%q, true) = %v, want %v", c.Text, got, c.IDsWithSpecial)
		}
		for i, id := range c.IDs {
			if got := tok.Piece(id); got != c.Tokens[i] {
				t.Errorf("Piece(%d) = %q, want %q", id, got, c.Tokens[i])
			}
		}
		checkDecode(t, tok, c.IDs, c.Decoded, c.DecodedSkip)
	}
	for _, c := range fx.Decode {
		checkDecode(t, tok, c.IDs, c.Decoded, c.DecodedSkip)
	}
}

// TestChatFixtures encodes rendered chats, which hold their special tokens as text; nothing is added.
func TestChatFixtures(t *testing.T) {
	var fx struct {
		Cases []struct {
			Name     string  `json:"name"`
			Rendered string  `json:"rendered"`
			IDs      []int32 `json:"ids"`
		} `json:"cases"`
	}
	readJSON(t, "../../test/models/fixtures/chat_cases.json", &fx)
	if len(fx.Cases) < 9 {
		t.Fatalf("fixture has only %d cases", len(fx.Cases))
	}
	tok := loadTest(t)
	for _, c := range fx.Cases {
		if got := tok.Encode(c.Rendered, false); !slices.Equal(got, c.IDs) {
			t.Errorf("%s: ids = %v, want %v", c.Name, got, c.IDs)
		}
		if got := tok.EncodePrompt(c.Rendered); !slices.Equal(got, c.IDs) {
			t.Errorf("%s: EncodePrompt = %v, want the one BOS of the template: %v", c.Name, got, c.IDs)
		}
	}
}

func checkDecode(t *testing.T, tok *Tokenizer, ids []int32, all, skipped string) {
	t.Helper()
	if got := tok.Decode(ids, false); got != all {
		t.Errorf("Decode(%v, false) = %q, want %q", ids, got, all)
	}
	if got := tok.Decode(ids, true); got != skipped {
		t.Errorf("Decode(%v, true) = %q, want %q", ids, got, skipped)
	}
}

// TestReference compares variants of the test tokenizer (other pre-tokenizers, normalisers, added tokens) with the reference.
func TestReference(t *testing.T) {
	var ref struct {
		Source   string `json:"source"`
		Variants []struct {
			Name  string                     `json:"name"`
			Patch map[string]json.RawMessage `json:"patch"`
			Cases []struct {
				Text string  `json:"text"`
				IDs  []int32 `json:"ids"`
			} `json:"cases"`
		} `json:"variants"`
	}
	readJSON(t, "testdata/reference.json", &ref)
	for _, v := range ref.Variants {
		t.Run(v.Name, func(t *testing.T) {
			tok, err := parse(patched(t, v.Patch), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range v.Cases {
				if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
					t.Errorf("Encode(%q) = %v %q, want %v %q (%s)", c.Text, got, pieces(tok, got), c.IDs, pieces(tok, c.IDs), ref.Source)
				}
			}
		})
	}
}

func pieces(tok *Tokenizer, ids []int32) []string {
	var out []string
	for _, id := range ids {
		out = append(out, tok.Piece(id))
	}
	return out
}

// patched returns the test tokenizer.json with keys replaced; "model.x" is a key of the model, and "model.merges" turns the
// merges into pairs.
func patched(t testing.TB, patch map[string]json.RawMessage) []byte {
	t.Helper()
	var file, model map[string]json.RawMessage
	readJSON(t, modelDir+"/tokenizer.json", &file)
	if err := json.Unmarshal(file["model"], &model); err != nil {
		t.Fatal(err)
	}
	for key, val := range patch {
		switch {
		case key == "model.merges" && string(val) == `"pairs"`:
			var m mergesJSON
			if err := json.Unmarshal(model["merges"], &m); err != nil {
				t.Fatal(err)
			}
			model["merges"] = marshal(t, [][2]string(m))
		case len(key) > 6 && key[:6] == "model.":
			model[key[6:]] = val
		default:
			file[key] = val
		}
	}
	file["model"] = marshal(t, model)
	return marshal(t, file)
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
