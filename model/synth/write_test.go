package synth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/model/weights"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a checkpoint that takes no time.
func small(d DType) Options {
	s, _ := Named("tiny-v3")
	return Options{Shape: s, DType: d, Layers: 2, Vocab: 301, Seed: 7}
}

// The most bytes in a file: all, and so few that there are several.
const (
	oneFile   = 1 << 30
	someFiles = 300_000
)

// write writes to a new directory.
func write(t *testing.T, o Options, shard int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made", "below")
	n, err := mustNew(t, o).Write(t.Context(), weights.Target{Dir: dir, MaxShard: shard}, nil)
	if err != nil || (n > 1) != (shard == someFiles) {
		t.Fatalf("%d files, error %v", n, err)
	}
	return dir
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

// tensorOf returns a tensor of any type.
func tensorOf(t *testing.T, c *weights.Checkpoint, name string) weights.Tensor {
	t.Helper()
	got, err := c.Tensor(name, weights.Want{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// f32s reads the numbers of a tensor that is F32.
func f32s(t *testing.T, c *weights.Checkpoint, name string) []float32 {
	t.Helper()
	data := tensorOf(t, c, name).Data
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

// TestBytesNeverChange: these are the bytes on every machine, for every number of cores.
func TestBytesNeverChange(t *testing.T) {
	want := map[DType]string{
		BFloat16: "49f1389ab15f4285",
		Float32:  "1f81b88aabb68c7f",
		FP8:      "083d0e17deb9dd77",
	}
	for _, cores := range []int{1, 3} {
		before := runtime.GOMAXPROCS(cores)
		for d, sum := range want {
			c, hash := open(t, write(t, small(d), oneFile)), sha256.New()
			for _, name := range c.Names() {
				hash.Write(tensorOf(t, c, name).Data)
			}
			if got := hex.EncodeToString(hash.Sum(nil)[:8]); got != sum {
				t.Errorf("%s on %d cores: SHA-256 of all tensors by name begins with %s, want %s", d, cores, got, sum)
			}
		}
		runtime.GOMAXPROCS(before)
	}
}

// TestShardsHoldTheSame: cut into files, and with other tensors beside it, a tensor has the same bytes.
func TestShardsHoldTheSame(t *testing.T) {
	more := small(BFloat16)
	more.Layers = 3
	whole, cut, longer := open(t, write(t, small(BFloat16), oneFile)), open(t, write(t, small(BFloat16), someFiles)), open(t, write(t, more, oneFile))
	if _, err := os.Stat(filepath.Join(write(t, small(BFloat16), someFiles), "model.safetensors.index.json")); err != nil {
		t.Error(err)
	}
	if names := whole.Names(); len(names) < 100 || !slices.Equal(names, cut.Names()) {
		t.Errorf("%d tensors in one file, %d in many", len(names), len(cut.Names()))
	}
	for _, name := range whole.Names() {
		if !bytes.Equal(tensorOf(t, whole, name).Data, tensorOf(t, cut, name).Data) {
			t.Errorf("%s differs in shards", name)
		}
		if strings.HasPrefix(name, "model.layers.1.") && !bytes.Equal(tensorOf(t, whole, name).Data, tensorOf(t, longer, name).Data) {
			t.Errorf("%s differs in a longer model", name)
		}
	}
	if n, _ := cut.Copied(); n != 0 {
		t.Errorf("%d tensors lie misaligned", n)
	}
}

// TestNumbers looks at what is in the tensors of each kind.
func TestNumbers(t *testing.T) {
	c := open(t, write(t, small(Float32), oneFile))
	for name, want := range map[string]float64{
		"model.embed_tokens.weight":                       1,
		"lm_head.weight":                                  2 / math.Sqrt(160),
		"model.layers.0.mlp.gate_proj.weight":             1 / math.Sqrt(160),
		"model.layers.1.mlp.experts.15.down_proj.weight":  1 / math.Sqrt(64),
		"model.layers.1.self_attn.kv_b_proj.weight":       1 / math.Sqrt(64),
		"model.layers.1.mlp.gate.e_score_correction_bias": biasDeviation,
	} {
		v, squares := f32s(t, c, name), 0.0
		for _, x := range v {
			squares += float64(x) * float64(x)
		}
		got, n := math.Sqrt(squares/float64(len(v))), float64(len(v))
		if math.Abs(got/want-1) > 4/math.Sqrt(2*n) { // four standard errors
			t.Errorf("%s: standard deviation %g of %d numbers, want %g", name, got, len(v), want)
		}
	}
	for _, name := range []string{"model.norm.weight", "model.layers.0.self_attn.q_a_layernorm.weight", "model.layers.2.enorm.weight"} {
		if v := f32s(t, c, name); slices.Min(v) != 1 || slices.Max(v) != 1 {
			t.Errorf("%s: %v, want ones", name, v)
		}
	}
	for copied, main := range map[string]string{"model.layers.2.embed_tokens.weight": "model.embed_tokens.weight", "model.layers.2.shared_head.head.weight": "lm_head.weight"} {
		if !slices.Equal(f32s(t, c, copied), f32s(t, c, main)) {
			t.Errorf("%s is no copy of %s", copied, main)
		}
	}
}

// TestFP8FollowsTheRule quantizes the float32 checkpoint of the same seed: scale = largest magnitude of the block / 448, weight =
// number / scale rounded to the nearest code.
func TestFP8FollowsTheRule(t *testing.T) {
	plain, quantized := open(t, write(t, small(Float32), oneFile)), open(t, write(t, small(FP8), oneFile))
	matrices := 0
	for _, name := range quantized.Names() {
		w := tensorOf(t, quantized, name)
		if w.DType != weights.F8E4M3 {
			continue
		}
		matrices++
		rows, cols := w.Shape[0], w.Shape[1]
		want, scales := f32s(t, plain, name), f32s(t, quantized, name+"_scale_inv")
		if len(scales) != blocks(rows)*blocks(cols) {
			t.Fatalf("%s %v has %d scales", name, w.Shape, len(scales))
		}
		largest := make([]float32, len(scales))
		for i, v := range want {
			b := i/cols/block*blocks(cols) + i%cols/block
			largest[b] = max(largest[b], float32(math.Abs(float64(v))))
		}
		for i, v := range want {
			b := i/cols/block*blocks(cols) + i%cols/block
			if scales[b] != largest[b]/448 {
				t.Fatalf("%s: scale of block %d is %g, want %g", name, b, scales[b], largest[b]/448)
			}
			x, got := float64(v/scales[b]), f8Value(w.Data[i])
			step := math.Ldexp(1, max(int(math.Floor(math.Log2(max(math.Abs(x), 1e-9)))), -6)-3)
			if math.Abs(x-got) > step/2 {
				t.Fatalf("%s: number %d is %g, its code means %g", name, i, x, got)
			}
		}
	}
	if matrices < 100 {
		t.Errorf("%d matrices are FP8", matrices)
	}
	for _, name := range []string{"model.embed_tokens.weight", "lm_head.weight", "model.layers.1.mlp.gate.weight", "model.layers.2.eh_proj.weight", "model.norm.weight"} {
		if d := tensorOf(t, quantized, name).DType; d != weights.BF16 {
			t.Errorf("%s is %s", name, d)
		}
	}
	if d := tensorOf(t, quantized, "model.layers.1.mlp.gate.e_score_correction_bias").DType; d != weights.F32 {
		t.Errorf("bias is %s", d)
	}
}

// names returns the names in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// TestForceReplaces: a checkpoint of many files becomes one of one, and nothing of it is left but what is no part of it.
func TestForceReplaces(t *testing.T) {
	dir := write(t, small(BFloat16), someFiles)
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustNew(t, small(FP8))
	if _, err := c.Write(t.Context(), weights.Target{Dir: dir, MaxShard: oneFile}, nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("without force: error %v", err)
	}
	if _, err := c.Write(t.Context(), weights.Target{Dir: dir, MaxShard: oneFile, Force: true}, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("directory has %q, want %q", got, want)
	}
	if d := tensorOf(t, open(t, dir), "model.layers.0.mlp.up_proj.weight").DType; d != weights.F8E4M3 {
		t.Errorf("type %s, want the new checkpoint's", d)
	}
}

// TestInterruptLeavesNothing ends the context at several of the points where progress is told.
func TestInterruptLeavesNothing(t *testing.T) {
	enough := errors.New("enough")
	c := mustNew(t, small(BFloat16))
	calls := 0
	if _, err := c.Write(t.Context(), weights.Target{Dir: filepath.Join(t.TempDir(), "x"), MaxShard: someFiles}, func(int64) { calls++ }); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{1, 2, calls / 2, calls} {
		base := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		n := 0
		_, err := c.Write(ctx, weights.Target{Dir: filepath.Join(base, "a", "b"), MaxShard: someFiles}, func(int64) {
			if n++; n == at {
				cancel(enough)
			}
		})
		if !errors.Is(err, enough) || n != at {
			t.Errorf("ended at call %d of %d: %d calls, error %v", at, calls, n, err)
		}
		if got := names(t, base); len(got) > 0 {
			t.Errorf("ended at call %d: left %q", at, got)
		}
	}
}

// TestInterruptKeepsWhatForceWouldReplace: until the new one is whole the old one is there.
func TestInterruptKeepsWhatForceWouldReplace(t *testing.T) {
	dir := write(t, small(BFloat16), someFiles)
	before := names(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	to := weights.Target{Dir: dir, MaxShard: someFiles, Force: true}
	if _, err := mustNew(t, small(FP8)).Write(ctx, to, func(int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, before) {
		t.Errorf("directory has %q, before it had %q", got, before)
	}
	if d := tensorOf(t, open(t, dir), "model.layers.0.mlp.up_proj.weight").DType; d != weights.BF16 {
		t.Errorf("type %s, want that of the old checkpoint", d)
	}
}

func TestNoRoomIsRefused(t *testing.T) {
	base := t.TempDir()
	c := mustNew(t, small(BFloat16))
	to := weights.Target{Dir: filepath.Join(base, "x"), MaxShard: oneFile, Free: func(string) (int64, error) { return c.Bytes() - 1, nil }}
	if _, err := c.Write(t.Context(), to, nil); err == nil || !strings.Contains(err.Error(), "are free") {
		t.Errorf("error %v", err)
	}
	if got := names(t, base); len(got) > 0 {
		t.Errorf("left %q", got)
	}
}

// TestProgressCountsAll: the last number is the size of all tensors, and none is smaller than the one before.
func TestProgressCountsAll(t *testing.T) {
	for _, d := range DTypes() {
		c := mustNew(t, small(d))
		last := int64(0)
		_, err := c.Write(t.Context(), weights.Target{Dir: t.TempDir(), MaxShard: someFiles}, func(done int64) {
			if done <= last {
				t.Errorf("%s: %d after %d", d, done, last)
			}
			last = done
		})
		if err != nil || last != c.Bytes() {
			t.Errorf("%s: %d of %d bytes, error %v", d, last, c.Bytes(), err)
		}
	}
}
