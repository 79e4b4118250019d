package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/moerack/moerack/model/config"
)

func TestBadJSON(t *testing.T) {
	tests := []struct{ name, content, words string }{
		{"letter in a number", "{\n  \"hidden_size\": 16x,\n}", "line 2, column 20"},
		{"trailing comma", "{\n  \"hidden_size\": 16,\n}", "line 3, column 1"},
		{"cut", `{"hidden_size": 16`, "line 1, column 18"},
		{"two values", "{}\n{}", "line 2, column 1"},
		{"empty", "", "is empty"},
		{"blank", " \n", "is empty"},
		{"list", "[1]", "holds a JSON list"},
		{"string", `"x"`, "holds a JSON string"},
		{"null", "null", "holds the JSON value null"},
		{"NaN", `{"rms_norm_eps": NaN}`, "line 1, column 18"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "config.json"), tt.content)
			mustRefuse(t, dir, filepath.Join(dir, "config.json"), tt.words)

			dir = changed(t, "tiny-v3", nil)
			write(t, filepath.Join(dir, "generation_config.json"), tt.content)
			mustRefuse(t, dir, filepath.Join(dir, "generation_config.json"), tt.words)
		})
	}
}

func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "nowhere")
	if err := mustRefuse(t, missing, missing, "no such directory", "Hugging Face model"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap fs.ErrNotExist", err)
	}
	if err := mustRefuse(t, dir, filepath.Join(dir, "config.json"), "no such file: is this the directory of a Hugging Face model?"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap fs.ErrNotExist", err)
	}
	file := filepath.Join(dir, "model.safetensors")
	write(t, file, "")
	mustRefuse(t, file, file, "is a file: give the directory")

	if err := os.Mkdir(filepath.Join(dir, "config.json"), 0o777); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, filepath.Join(dir, "config.json"), "cannot be read", "is a directory")
}

func TestUnreadableFile(t *testing.T) {
	dir := changed(t, "tiny-v3", nil)
	path := filepath.Join(dir, "config.json")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(path); err == nil {
		f.Close()
		t.Skip("this user may read every file")
	}
	if err := mustRefuse(t, dir, path, "cannot be read"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v does not wrap fs.ErrPermission", err)
	}
}

func TestBrokenLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "blobs"), filepath.Join(dir, "config.json")); err != nil {
		t.Skip(err)
	}
	mustRefuse(t, dir, filepath.Join(dir, "config.json"), "cannot be read")
}

func TestHugeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	write(t, path, "{}")
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, path, "has 1073741824 bytes")
}

// Whatever the file holds, Load returns a checked configuration or an error.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{models + "/*/config.json", models + "/random/*/config.json", "testdata/configs/*/config.json"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			f.Fatalf("no seeds in %s (%v)", pattern, err)
		}
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, s := range []string{"", "{", "[]", "null", `{"architectures":[{}]}`, `{"architectures":["DeepseekV3ForCausalLM"],"rope_scaling":{"type":"yarn"},"quantization_config":{"quant_method":"fp8"}}`} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(dir)
		if err != nil {
			if c != nil || err.Error() == "" {
				t.Fatalf("configuration %v with error %q", c, err)
			}
			return
		}
		for _, size := range []int{
			c.HiddenSize, c.NumLayers, c.VocabSize, c.NumHeads, c.KVLoraRank, c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim,
			c.IntermediateSize, c.MoEIntermediateSize, c.NumRoutedExperts, c.NumExpertsPerTok, c.NGroup, c.TopKGroup, c.MaxPositionEmbeddings,
		} {
			if size < 1 || size > 1<<30 {
				t.Fatalf("size %d in %+v", size, *c)
			}
		}
		if c.NumRoutedExperts%c.NGroup != 0 || c.TopKGroup > c.NGroup || c.NumExpertsPerTok > c.NumRoutedExperts/c.NGroup*c.TopKGroup ||
			c.QKRopeHeadDim%2 != 0 || c.FirstKDenseReplace < 0 || c.FirstKDenseReplace > c.NumLayers || c.QLoraRank < 0 || c.NumSharedExperts < 0 {
			t.Fatalf("contradicting sizes passed: %+v", *c)
		}
	})
}
