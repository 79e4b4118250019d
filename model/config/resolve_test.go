package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/config"
)

func TestResolve(t *testing.T) {
	root := t.TempDir()
	snapshot := func(hub string) string { return filepath.Join(hub, "models--acme--tiny", "snapshots", "abc123") }
	cached := func(hub string) string {
		write(t, filepath.Join(hub, "models--acme--tiny", "refs", "main"), "abc123\n")
		write(t, filepath.Join(snapshot(hub), "config.json"), "{}")
		return hub
	}
	hubCache := cached(filepath.Join(root, "hubcache"))
	hfHome := cached(filepath.Join(root, "hfhome", "hub"))
	home := cached(filepath.Join(root, "home", ".cache", "huggingface", "hub"))
	xdg := cached(filepath.Join(root, "xdg", "huggingface", "hub"))
	empty := filepath.Join(root, "empty")
	broken := filepath.Join(root, "broken")
	write(t, filepath.Join(broken, "models--acme--tiny", "refs", "main"), "gone")
	evil := filepath.Join(root, "evil")
	write(t, filepath.Join(evil, "models--acme--tiny", "refs", "main"), "../../x")
	file := filepath.Join(root, "file")
	write(t, file, "")

	tests := []struct {
		name  string
		model string
		env   map[string]string
		want  string // "": an error
		words []string
	}{
		{"directory", root, nil, root, nil},
		{"a file is taken too, Load refuses it", file, nil, file, nil},
		{"HF_HUB_CACHE first", "acme/tiny", map[string]string{"HF_HUB_CACHE": hubCache, "HF_HOME": filepath.Dir(hfHome), "HOME": root + "/home"}, snapshot(hubCache), nil},
		{"HF_HOME next", "acme/tiny", map[string]string{"HF_HOME": filepath.Dir(hfHome), "HOME": root + "/home"}, snapshot(hfHome), nil},
		{"HF_HOME with a tilde", "acme/tiny", map[string]string{"HF_HOME": "~/hfhome", "HOME": root}, snapshot(hfHome), nil},
		{"XDG_CACHE_HOME next", "acme/tiny", map[string]string{"XDG_CACHE_HOME": root + "/xdg", "HOME": root + "/home"}, snapshot(xdg), nil},
		{"home last", "acme/tiny", map[string]string{"HOME": root + "/home"}, snapshot(home), nil},
		{"not cached", "acme/other", map[string]string{"HF_HUB_CACHE": hubCache}, "", []string{"acme/other", filepath.Join(hubCache, "models--acme--other", "refs", "main"), "HF_HUB_CACHE", "nothing is downloaded"}},
		{"no cache at all", "acme/tiny", map[string]string{"HF_HOME": empty}, "", []string{filepath.Join(empty, "hub"), "HF_HOME"}},
		{"snapshot gone", "acme/tiny", map[string]string{"HF_HUB_CACHE": broken}, "", []string{filepath.Join(broken, "models--acme--tiny", "snapshots", "gone")}},
		{"reference leads out", "acme/tiny", map[string]string{"HF_HUB_CACHE": evil}, "", []string{`"../../x"`, "want the name of a directory in snapshots"}},
		{"no environment", "acme/tiny", nil, "", []string{"HF_HUB_CACHE, HF_HOME and HOME are not set"}},
		{"missing path", root + "/a/b", map[string]string{"HF_HUB_CACHE": hubCache}, "", []string{root + "/a/b", "no such directory"}},
		{"dots are no name", "../nowhere", map[string]string{"HF_HUB_CACHE": hubCache}, "", []string{"no such directory"}},
		{"empty", "", nil, "", []string{"no model given"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := config.Resolve(tt.model, func(key string) string { return tt.env[key] })
			if (err == nil) != (tt.want != "") || dir != tt.want {
				t.Fatalf("Resolve = %q, %v, want %q", dir, err, tt.want)
			}
			for _, w := range tt.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error does not hold %q: %v", w, err)
				}
			}
		})
	}
}
