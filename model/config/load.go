package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
)

// Load reads and checks the configuration of the model in dir. Only the two
// configuration files are opened; of the others the names are looked at. What
// the files hold wrongly comes as one *Error with all faults; a file that is
// missing, unreadable or no JSON is an error of its own that wraps the cause.
func Load(dir string) (*Config, error) {
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	r := &report{}
	checkLayout(dir, names, r)
	if !slices.Contains(names, configFile) {
		if err := r.err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("config: %s: %w", filepath.Join(dir, configFile), errNoConfig)
	}
	doc, err := readDocument(filepath.Join(dir, configFile), r)
	if err != nil {
		return nil, err
	}
	a, modelType, ok := doc.architecture()
	if !ok {
		return nil, r.err()
	}
	c := &Config{Architecture: a, ModelType: modelType}
	c.readSizes(doc)
	c.readRope(doc)
	c.readRouting(doc)
	c.readQuantization(doc)
	c.refuse(doc)
	c.checkRouting(doc)

	generation := &document{path: filepath.Join(dir, generationFile), values: map[string]any{}, report: r}
	if slices.Contains(names, generationFile) {
		if generation, err = readDocument(generation.path, r); err != nil {
			return nil, err
		}
	}
	c.readGeneration(generation)
	c.readTokens(doc, generation)
	if err := r.err(); err != nil {
		return nil, err
	}
	c.Warnings = r.warnings
	return c, nil
}

var errNoConfig = fmt.Errorf("no such file: is this the directory of a Hugging Face model? (it holds config.json and *.safetensors): %w", fs.ErrNotExist)

// list gives the names in the model's directory.
func list(dir string) ([]string, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("config: %s: no such directory: give the directory of a Hugging Face model: %w", dir, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("config: %s: cannot be read: %w", dir, err)
	case !info.IsDir():
		return nil, fmt.Errorf("config: %s: is a file: give the directory of a Hugging Face model (config.json and *.safetensors)", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("config: %s: cannot be listed: %w", dir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}
