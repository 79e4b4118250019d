package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/moerack/moerack/internal/readfile"
)

var hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

// Resolve turns what a user calls a model into a directory. A path that exists is
// taken as it is, also when it is no directory (Load says so). A name of the form
// org/name is looked up in the local Hugging Face cache, at the revision that
// refs/main names; nothing is downloaded. env gives variables of the environment,
// "" for one that is not set. The error says where was looked.
func Resolve(nameOrPath string, env func(string) string) (string, error) {
	if nameOrPath == "" {
		return "", fmt.Errorf("config: no model given: want a directory, or org/name from the Hugging Face cache")
	}
	if _, err := os.Stat(nameOrPath); err == nil {
		return nameOrPath, nil
	}
	if !hubName.MatchString(nameOrPath) {
		return "", fmt.Errorf("config: %s: no such directory, and not org/name of a model in the Hugging Face cache: %w", nameOrPath, fs.ErrNotExist)
	}
	cache, from := hubCache(env)
	if cache == "" {
		return "", fmt.Errorf("config: %s: no such directory, and no Hugging Face cache to look in (HF_HUB_CACHE, HF_HOME and HOME are not set): %w", nameOrPath, fs.ErrNotExist)
	}
	model := filepath.Join(cache, "models--"+strings.ReplaceAll(nameOrPath, "/", "--"))
	ref := filepath.Join(model, "refs", "main")
	const remedy = "nothing is downloaded: fetch the model first (hf download %[1]s) or give its directory"
	data, err := readfile.Regular(ref, maxFileSize)
	if err != nil {
		return "", fmt.Errorf("config: %[1]s: no such directory, and not in the Hugging Face cache: looked for %[2]s (%[3]s); "+remedy+": %[4]w", nameOrPath, ref, from, err)
	}
	revision := strings.TrimSpace(string(data))
	if revision == "" || revision == "." || revision == ".." || strings.ContainsAny(revision, `/\`) {
		return "", fmt.Errorf("config: %s: %s holds %q, want the name of a directory in snapshots", nameOrPath, ref, shorten(revision))
	}
	dir := filepath.Join(model, "snapshots", revision)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("config: %[1]s: %[2]s names a snapshot that is not in the Hugging Face cache: looked for %[3]s (%[4]s); "+remedy, nameOrPath, ref, dir, from)
	}
	return dir, nil
}

// hubCache gives the cache directory by the rules of the Hugging Face client, and
// what decided it.
func hubCache(env func(string) string) (dir, from string) {
	home := env("HOME")
	if home == "" {
		home = env("USERPROFILE")
	}
	expand := func(path string) string {
		if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
			return filepath.Join(home, rest)
		}
		return path
	}
	if v := env("HF_HUB_CACHE"); v != "" {
		return expand(v), "from HF_HUB_CACHE"
	}
	if v := env("HF_HOME"); v != "" {
		return filepath.Join(expand(v), "hub"), "from HF_HOME"
	}
	if v := env("XDG_CACHE_HOME"); v != "" {
		return filepath.Join(expand(v), "huggingface", "hub"), "from XDG_CACHE_HOME"
	}
	if home == "" {
		return "", ""
	}
	return filepath.Join(home, ".cache", "huggingface", "hub"), "HF_HUB_CACHE and HF_HOME are not set"
}
