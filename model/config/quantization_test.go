package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/config"
)

// TestToW8A8: the model is the same, but for how its weights are stored.
func TestToW8A8(t *testing.T) {
	for _, model := range []string{"tiny-v2lite", "tiny-v3", "tiny-v3-fp8", "random/rnd-v2-group"} {
		want := *mustLoad(t, filepath.Join(models, model))
		document, err := os.ReadFile(filepath.Join(models, model, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		document, err = config.ToW8A8(document)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "config.json")
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		write(string(document))
		got := *mustLoad(t, dir)
		want.Quantization, want.NumNextNPredictLayers, want.Generation = config.Quantization{W8A8: true}, 0, config.Generation{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got  %+v\nwant %+v", model, got, want)
		}
		if got.Quantization.FP8() || strings.Contains(string(document), "float8") {
			t.Errorf("%s: still says FP8", model)
		}
		again, err := config.ToW8A8(document)
		if err != nil || string(again) != string(document) {
			t.Errorf("%s: said twice it becomes another, %v", model, err)
		}
		write(strings.Replace(string(document), `"version": 1`, `"version": 2`, 1))
		mustRefuse(t, dir, "quantization_config.version=2", "supported: 1", "quantize the model again")
	}
	for _, bad := range []string{"", "{", "[]", "null", "7"} {
		if text, err := config.ToW8A8([]byte(bad)); err == nil || text != nil {
			t.Errorf("%q became %q", bad, text)
		}
	}
}
