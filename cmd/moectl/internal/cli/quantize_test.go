package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/weights"
)

const testModels = "../../../../test/models"

func quantizeTo(ctx context.Context, dir, out string) (quantized, string, error) {
	var log bytes.Buffer
	result, err := quantizeModel(ctx, slog.New(slog.NewTextHandler(&log, nil)), dir, weights.Target{Dir: out, MaxShard: 1 << 20})
	return result, log.String(), err
}

// TestQuantizedAsLoaded: the file holds, byte for byte, what loading the original as int8 makes, and needs no conversion itself.
func TestQuantizedAsLoaded(t *testing.T) {
	for _, model := range []string{"tiny-v3", "tiny-v3-fp8", "random/rnd-v2-greedy", "random/rnd-v2-group"} {
		dir, out := filepath.Join(testModels, model), filepath.Join(t.TempDir(), "q")
		result, _, err := quantizeTo(t.Context(), dir, out)
		if err != nil {
			t.Fatal(err)
		}
		config, err := modelconfig.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := deepseek.Quantized(config)
		if err != nil {
			t.Fatal(err)
		}
		original, made := open(t, dir), open(t, out)
		reader := original.NewReaderFor(weights.Int8)
		compared := 0
		compare := func(name string, want weights.Tensor) {
			got, err := made.Tensor(name, weights.Want{DTypes: []weights.DType{want.DType}})
			if err != nil || !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%s: %s differs from what a load makes, %v", model, name, err)
			}
			compared++
		}
		for _, p := range pieces {
			if p.Vector {
				v, err := original.Tensor(p.Name, weights.Want{})
				if err != nil {
					t.Fatal(err)
				}
				compare(p.To, v)
				continue
			}
			l, err := reader.Linear(p.Matrix)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(p.To, ".k_b_proj.weight") && l.Heads.Size > l.Heads.To-l.Heads.From { // used in place with the values
				l.Weight.Data = gather(l)
			}
			compare(p.To, l.Weight)
			if l.Scale != nil {
				compare(strings.Replace(l.Scale.Name, p.Name, p.To, 1), *l.Scale)
			}
		}
		if all := len(made.Names()); compared != all || result.Tensors != all {
			t.Errorf("%s: compared %d of %d tensors, reported %d", model, compared, all, result.Tensors)
		}
		if n, _ := made.Converted(); n != 0 {
			t.Errorf("%s: %d conversions of the quantized checkpoint", model, n)
		}
		if n, _ := made.Copied(); n != 0 {
			t.Errorf("%s: %d tensors lie misaligned", model, n)
		}
	}
}

// gather gives the rows that are meant, one after the other.
func gather(l weights.Linear) (data []byte) {
	width := len(l.Weight.Data) / l.Weight.Shape[0]
	for head := 0; head < l.Weight.Shape[0]; head += l.Heads.Size {
		data = append(data, l.Weight.Data[(head+l.Heads.From)*width:(head+l.Heads.To)*width]...)
	}
	return data
}

func open(t *testing.T, dir string) *weights.Checkpoint {
	t.Helper()
	c, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestQuantizeLeavesNothing: neither an interrupt nor a broken weight leaves a directory that was not there.
func TestQuantizeLeavesNothing(t *testing.T) {
	dir, parent := filepath.Join(testModels, "random", "rnd-v3-yarn"), t.TempDir()
	out := filepath.Join(parent, "new", "q")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	if _, _, err := quantizeTo(ctx, dir, out); !errors.Is(err, errInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.CopyFS(broken, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	spoilBF16(t, filepath.Join(broken, "model.safetensors"), "lm_head.weight", 64+3)
	_, _, err := quantizeTo(t.Context(), broken, out)
	if err == nil || !strings.Contains(err.Error(), `tensor "lm_head.weight": row 1 holds a NaN`) || !strings.Contains(err.Error(), "moectl doctor") {
		t.Errorf("a NaN: %v", err)
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// spoilBF16 makes an element of a tensor NaN.
func spoilBF16(t *testing.T, path, tensor string, element int) {
	t.Helper()
	c := open(t, filepath.Dir(path))
	x, err := c.Tensor(tensor, weights.Want{DTypes: []weights.DType{weights.BF16}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(file, x.Data)
	binary.LittleEndian.PutUint16(file[at+2*element:], 0x7fc0)
	next := path + ".new" // the file is mapped: it is replaced, not changed
	if err := os.WriteFile(next, file, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// TestQuantizeFiles: what goes with a model is copied, other forms of its weights are not.
func TestQuantizeFiles(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "m"), filepath.Join(t.TempDir(), "q")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testModels, "random", "rnd-v3-yarn"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.model", "LICENSE", "pytorch_model.bin", "model.gguf", "old.safetensors.partial"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "figures"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, log, err := quantizeTo(t.Context(), dir, out); err != nil || strings.Contains(log, "left out") {
		t.Fatalf("%v, log %s", err, log)
	}
	for name, want := range map[string]bool{"tokenizer.model": true, "LICENSE": true, "config.json": true, "model.safetensors": true, "pytorch_model.bin": false, "model.gguf": false, "old.safetensors.partial": false, "figures": false} {
		if _, err := os.Stat(filepath.Join(out, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	var text bytes.Buffer
	code := Run(Host{Args: []string{"quantize", "--model", dir, "--out", out, "--force", "-o", "json"}, Stdin: strings.NewReader(""), Stdout: &text, Stderr: io.Discard})
	if code != exitOK || !strings.Contains(text.String(), `"int8_matrices":`) {
		t.Errorf("exit code %d, %s", code, text.String())
	}
}
