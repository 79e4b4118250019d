package weights_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/moerack/moerack/model/weights"
)

// planned are tensors of all widths, with odd sizes.
var planned = []weights.Entry{
	{Name: "a.weight", DType: weights.I8, Shape: []int{3, 5}},
	{Name: "a.weight_scale", DType: weights.F32, Shape: []int{3, 1}},
	{Name: `b "quoted"`, DType: weights.BF16, Shape: []int{7}},
	{Name: "c", DType: weights.F8E4M3, Shape: []int{1, 9}},
	{Name: "d", DType: weights.F32, Shape: []int{2, 2}},
	{Name: "nothing", DType: weights.F32, Shape: []int{0, 4}},
}

var widths = map[weights.DType]int{weights.I8: 1, weights.F8E4M3: 1, weights.BF16: 2, weights.F32: 4}

// content gives the data of a planned tensor.
func content(e weights.Entry) []byte {
	n := widths[e.DType]
	for _, d := range e.Shape {
		n *= d
	}
	data := counting(n)
	for i := range data {
		data[i] += e.Name[0]
	}
	return data
}

// writeAll writes the planned tensors, the last piece of each first.
func writeAll(t *testing.T, w *weights.Writer) {
	t.Helper()
	for _, e := range planned {
		data := content(e)
		half := len(data) / 2
		do(t, w.WriteAt(e.Name, data[half:], int64(half)))
		do(t, w.WriteAt(e.Name, data[:half], 0))
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	do(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// TestWriter: what was written is read back, aligned, from one file and from several.
func TestWriter(t *testing.T) {
	for _, tt := range []struct {
		most   int64
		shards int
		files  []string
	}{
		{1 << 20, 1, []string{"config.json", "model.safetensors", "z.txt"}},
		{40, 2, []string{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json", "z.txt"}},
	} {
		dir := filepath.Join(t.TempDir(), "new", "model")
		w, err := weights.NewWriter(weights.Target{Dir: dir, MaxShard: tt.most}, planned)
		do(t, err)
		if w.Bytes() != 15+12+14+9+16 || w.Shards() != tt.shards {
			t.Errorf("%d bytes in %d files", w.Bytes(), w.Shards())
		}
		writeAll(t, w)
		do(t, w.AddFile("z.txt", strings.NewReader("hello")))
		do(t, w.AddFile("config.json", strings.NewReader("{}")))
		for _, name := range names(t, dir) {
			if !strings.HasSuffix(name, ".partial") {
				t.Errorf("%s has its name before the end", name)
			}
		}
		do(t, w.Commit())
		if got := names(t, dir); !slices.Equal(got, tt.files) {
			t.Errorf("wrote %q, want %q", got, tt.files)
		}
		c := mustOpen(t, dir)
		for _, e := range planned {
			got, err := c.Tensor(e.Name, weights.Want{Shape: e.Shape, DTypes: []weights.DType{e.DType}})
			do(t, err)
			if !bytes.Equal(got.Data, content(e)) {
				t.Errorf("%s: read %v, wrote %v", e.Name, got.Data, content(e))
			}
		}
		if n, _ := c.Copied(); n != 0 {
			t.Errorf("%d tensors lie misaligned", n)
		}
		first, err := c.Tensor("a.weight_scale", weights.Want{})
		do(t, err)
		if a := uintptr(unsafe.Pointer(&first.Data[0])) % 64; a != 0 {
			t.Errorf("the data begin at %d past a cache line", a)
		}
	}
}

// TestWriterRefuses: before anything is written.
func TestWriterRefuses(t *testing.T) {
	full, parent := t.TempDir(), t.TempDir()
	do(t, os.WriteFile(filepath.Join(full, "notes.txt"), nil, 0o666))
	for _, tt := range []struct {
		to    weights.Target
		list  []weights.Entry
		words []string
	}{
		{weights.Target{}, planned, []string{"no directory"}},
		{weights.Target{Dir: full}, planned, []string{"is not empty (it has notes.txt)"}},
		{weights.Target{Dir: filepath.Join(full, "notes.txt")}, planned, []string{"notes.txt"}},
		{weights.Target{Dir: filepath.Join(parent, "new"), Free: func(string) (int64, error) { return 100, nil }}, planned, []string{"has ", "below " + parent + " 100 are free"}},
		{weights.Target{Dir: filepath.Join(parent, "new")}, append(planned[:1:1], planned[0]), []string{"comes twice"}},
		{weights.Target{Dir: filepath.Join(parent, "new")}, []weights.Entry{{Name: "big", DType: weights.F32, Shape: []int{1 << 40, 1 << 40}}}, []string{"too large"}},
	} {
		_, err := weights.NewWriter(tt.to, tt.list)
		mustFail(t, err, tt.words...)
	}
	if got := names(t, full); !slices.Equal(got, []string{"notes.txt"}) {
		t.Errorf("left %q", got)
	}
	if got := names(t, parent); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// TestWriterDiscards: what is not whole leaves nothing.
func TestWriterDiscards(t *testing.T) {
	parent := t.TempDir()
	to := weights.Target{Dir: filepath.Join(parent, "deep", "new"), MaxShard: 20}
	w, err := weights.NewWriter(to, planned)
	do(t, err)
	mustFail(t, w.WriteAt("a.weight", make([]byte, 16), 0), `tensor "a.weight": 16 bytes at 0 do not fit the 15`)
	mustFail(t, w.WriteAt("other", nil, 0), `tensor "other"`)
	do(t, w.AddFile("config.json", strings.NewReader("{}")))
	mustFail(t, w.Commit(), "of ", "bytes were written")
	if got := names(t, parent); len(got) != 0 {
		t.Errorf("left %q", got)
	}
	w, err = weights.NewWriter(to, planned)
	do(t, err)
	cause := errors.New("interrupted")
	if err := w.Discard(cause); !errors.Is(err, cause) || err.Error() != cause.Error() {
		t.Errorf("discard gave %v", err)
	}
	if got := names(t, parent); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// TestWriterReplaces: by force the old checkpoint goes when the new one is complete, and not before.
func TestWriterReplaces(t *testing.T) {
	dir := t.TempDir()
	old := []string{"config.json", "model-00001-of-00001.safetensors", "model.safetensors.index.json", "model.safetensors.partial", "README.md"}
	for _, name := range old {
		do(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o666))
	}
	to := weights.Target{Dir: dir, Force: true, MaxShard: 1 << 20}
	w, err := weights.NewWriter(to, planned)
	do(t, err)
	do(t, w.AddFile("config.json", strings.NewReader("new")))
	if err := w.Commit(); err == nil {
		t.Error("a checkpoint without data replaced another")
	}
	if data, err := os.ReadFile(filepath.Join(dir, "config.json")); string(data) != "old" || err != nil {
		t.Errorf("config.json holds %q, %v after a failure", data, err)
	}
	w, err = weights.NewWriter(to, planned)
	do(t, err)
	writeAll(t, w)
	do(t, w.AddFile("config.json", strings.NewReader("new")))
	do(t, w.Commit())
	if got, want := names(t, dir), []string{"README.md", "config.json", "model.safetensors"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "config.json")); string(data) != "new" || err != nil {
		t.Errorf("config.json holds %q, %v", data, err)
	}
}
