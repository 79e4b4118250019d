package synth

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/config"
)

func named(t *testing.T, name string) Shape {
	t.Helper()
	s, ok := Named(name)
	if !ok {
		t.Fatalf("no shape %q", name)
	}
	return s
}

func mustNew(t *testing.T, o Options) *Checkpoint {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPublishedSizes: the weights of a shape are as many as its model has, by the numbers of its checkpoint's page.
func TestPublishedSizes(t *testing.T) {
	for name, want := range map[string]struct{ parameters, bytes float64 }{
		"v2lite": {15.7e9, 31.4e9},
		"v2":     {235.7e9, 471.5e9},
		"v3":     {684.5e9, 688.6e9}, // with the MTP module
	} {
		c := mustNew(t, Options{Shape: named(t, name)})
		if got := float64(c.Parameters()); got < want.parameters-0.05e9 || got > want.parameters+0.05e9 {
			t.Errorf("%s: %.4g parameters, published %.4g", name, got, want.parameters)
		}
		if got := float64(c.Bytes()); got < 0.999*want.bytes || got > 1.001*want.bytes {
			t.Errorf("%s: %.4g bytes, published %.4g", name, got, want.bytes)
		}
	}
}

// TestShapesAreRead: what is written as config.json is what the reader of configurations takes, without a warning.
func TestShapesAreRead(t *testing.T) {
	for _, s := range Shapes() {
		for _, d := range DTypes() {
			c := mustNew(t, Options{Shape: s, DType: d})
			dir := writeConfig(t, c)
			got, err := config.Load(dir)
			if err != nil {
				t.Errorf("%s, %s: %v", s.Name, d, err)
				continue
			}
			if len(got.Warnings) > 0 || got.Quantization.FP8() != (d == FP8) || got.NumLayers != s.Layers() || got.VocabSize != s.Vocab() {
				t.Errorf("%s, %s: read as %+v", s.Name, d, got)
			}
		}
	}
}

func writeConfig(t *testing.T, c *Checkpoint) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]any{"config.json": c.config, "generation_config.json": c.config.generation()} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOptionsChangeTheConfiguration(t *testing.T) {
	c := mustNew(t, Options{Shape: named(t, "v2lite"), Layers: 2, Vocab: 1000})
	got, err := config.Load(writeConfig(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if got.NumLayers != 2 || got.VocabSize != 1000 || got.BOSTokenID != 0 || got.EOSTokenIDs[0] != 1 || len(got.Warnings) > 0 {
		t.Errorf("read as %+v, want 2 layers and BOS and EOS inside a vocabulary of 1000", got)
	}
}

func TestOptionsAreRefused(t *testing.T) {
	v3 := named(t, "v3")
	for _, c := range []struct {
		o     Options
		words []string
	}{
		{Options{}, []string{"no shape"}},
		{
			Options{Shape: v3, DType: "int4", Layers: 3, Vocab: 1},
			[]string{`dtype "int4": must be bfloat16, float32 or fp8`, "3 layers: must be 4 … 256 (the first 3 of shape v3 are dense", "vocabulary of 1: must be 2"},
		},
		{Options{Shape: v3, Layers: -5}, []string{"-5 layers"}},
		{Options{Shape: v3, Layers: 1 << 20, Vocab: 1 << 30}, []string{"1048576 layers", "vocabulary of 1073741824"}},
	} {
		_, err := New(c.o)
		if err == nil {
			t.Errorf("%+v: no error", c.o)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("error does not hold %q: %v", w, err)
			}
		}
	}
	if _, ok := Named("v4"); ok {
		t.Error("there is a shape v4")
	}
}
