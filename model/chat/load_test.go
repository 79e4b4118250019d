package chat

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	const broken = `{"chat_template": "{% for m in messages %}"}`
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // rendered text
		err   string // or part of the error
	}{
		{"string", map[string]string{configFile: `{"chat_template": "a{{ bos_token }}", "bos_token": "<s>"}`}, "a<s>", ""},
		{"token object", map[string]string{configFile: `{"chat_template": "a{{ bos_token }}", "bos_token": {"__type": "AddedToken", "content": "<s>"}, "unk_token": null}`}, "a<s>", ""},
		{"list", map[string]string{configFile: `{"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}`}, "d", ""},
		{"file wins", map[string]string{configFile: `{"chat_template": "a", "eos_token": "</s>"}`, templateFile: "f{{ eos_token }}"}, "f</s>", ""},
		{"file alone", map[string]string{templateFile: "f{{ eos_token is defined }}"}, "fFalse", ""},
		{"empty directory", nil, "", "no chat template"},
		{"null", map[string]string{configFile: `{"chat_template": null}`}, "", "no chat template"},
		{"no default", map[string]string{configFile: `{"chat_template": [{"name": "rag", "template": "t"}]}`}, "", "(rag)"},
		{"wrong type", map[string]string{configFile: `{"chat_template": 7}`}, "", "must be a string or a list"},
		{"wrong token", map[string]string{configFile: `{"chat_template": "a", "bos_token": 7}`}, "", "bos_token"},
		{"not JSON", map[string]string{configFile: `{`}, "", configFile},
		{"broken template", map[string]string{configFile: broken}, "", "does not compile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tpl, err := Load(dir)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("Load: %v, want an error with %q", err, c.err)
				}
				if want := strings.Contains(err.Error(), ErrNoTemplate.Error()); errors.Is(err, ErrNoTemplate) != want {
					t.Errorf("errors.Is(%v, ErrNoTemplate) = %v", err, !want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := tpl.Render(mustParse(t, `[{"role": "user", "content": "x"}]`), Options{}); err != nil || got != c.want {
				t.Errorf("Render = %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
