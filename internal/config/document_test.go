package config

import (
	"maps"
	"strings"
	"testing"
)

func TestOneDocument(t *testing.T) {
	for text, want := range map[string]map[string]any{
		"":                              nil,
		"top_k: 1\n":                    {"top_k": 1},
		"---\ntop_k: 1\n...\n":          {"top_k": 1},
		"top_k: 1\n---\n# nothing\n":    {"top_k": 1},
		"top_k: 1\n---\n---\n":          {"top_k": 1},
		"# first\n---\ntop_k: 1\n":      {"top_k": 1},
		"%YAML 1.1\n---\ntop_k: 1\n":    {"top_k": 1},
		"top_k: 1\nstop: \"a\\n---\"\n": {"top_k": 1, "stop": "a\n---"},
	} {
		got, err := document(write(t, text))
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"top_k: 1\n---\ntop_k: 2\n", "top_k: 1\n---\n---\ntop_k: 2\n", "top_k: 1\n---\n[\n", "---\n---\ntop_k: 1\n", "top_k: 1\n---\ntext\n", "top_k: 1\n...\ntop_k: 2\n", "top_k: 1\n--- {top_k: 2}\n", "---\r\ntop_k: 1\r\n---\ttext\r\n", "stop: \"a\n--- b\"\n"} {
		if got, err := document(write(t, text)); err == nil || !strings.Contains(err.Error(), "several YAML documents") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
