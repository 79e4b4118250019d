package weights_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
)

// A file broken in one way is refused with the file, the tensor and the numbers.
func TestBrokenFile(t *testing.T) {
	raw := func(header string, dataLen int) func(string) error {
		return func(path string) error {
			return weightstest.WriteRaw(path, uint64(len(header)), header, make([]byte, dataLen))
		}
	}
	one := func(fields string) string { return `{"x":{` + fields + `}}` }
	tests := []struct {
		name  string
		write func(path string) error
		words []string
	}{
		{"empty", func(p string) error { return os.WriteFile(p, nil, 0o666) }, []string{"is empty"}},
		{"seven bytes", func(p string) error { return os.WriteFile(p, make([]byte, 7), 0o666) }, []string{"has 7 bytes"}},
		{"directory", func(p string) error { return os.Mkdir(p, 0o777) }, []string{"is a directory"}},
		{"LFS pointer", func(p string) error {
			return os.WriteFile(p, []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), 0o666)
		}, []string{"Git LFS pointer", "git lfs pull"}},
		{"huge header", func(p string) error { return weightstest.WriteRaw(p, 1<<60, "{}", nil) }, []string{"header length 1152921504606846976", "limit of 100000000", "has 10 bytes"}},
		{"negative header", func(p string) error { return weightstest.WriteRaw(p, 1<<64-1, "{}", nil) }, []string{"header length 18446744073709551615"}},
		{"header over the end", func(p string) error { return weightstest.WriteRaw(p, 100, "{}", nil) }, []string{"header needs 100 bytes, file ends 98 short"}},
		{"empty header", raw("", 0), []string{"header: the JSON ends early"}},
		{"no JSON", raw("<html>", 0), []string{"header: byte 0 is '<', want an object"}},
		{"cut JSON", raw(`{"x":{"dtype":"F32"`, 0), []string{"the JSON ends early"}},
		{"list", raw("[]", 0), []string{"header: byte 0 is '[', want an object"}},
		{"two objects", raw("{} {}", 0), []string{"something follows the JSON object"}},
		{"bytes after the object", raw("{}\x00", 0), []string{"something follows"}},
		{"bad metadata", raw(`{"__metadata__":{"a":1}}`, 0), []string{"__metadata__"}},
		{"entry is a number", raw(`{"x":3}`, 0), []string{`tensor "x": byte 5 is '3', want an object`}},
		{"name twice", raw(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), []string{`"x" comes twice`}},
		{"field twice", raw(one(`"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]`), 1), []string{`"dtype" comes twice`}},
		{"no dtype", raw(one(`"shape":[1],"data_offsets":[0,1]`), 1), []string{`tensor "x": has no dtype`}},
		{"no shape", raw(one(`"dtype":"U8","data_offsets":[0,1]`), 1), []string{"has no shape"}},
		{"no offsets", raw(one(`"dtype":"U8","shape":[1]`), 1), []string{"has no data_offsets"}},
		{"unknown dtype", raw(one(`"dtype":"Q4_K","shape":[1],"data_offsets":[0,1]`), 1), []string{`tensor "x": dtype "Q4_K" is unknown`}},
		{"dtype is a number", raw(one(`"dtype":3,"shape":[1],"data_offsets":[0,1]`), 1), []string{"dtype: byte 14 is '3', want a string"}},
		{"negative size", raw(one(`"dtype":"U8","shape":[-1],"data_offsets":[0,1]`), 1), []string{`tensor "x": shape: -1 is no whole number`}},
		{"fraction", raw(one(`"dtype":"U8","shape":[1.5],"data_offsets":[0,1]`), 1), []string{"1.5 is no whole number"}},
		{"null shape", raw(one(`"dtype":"U8","shape":null,"data_offsets":[0,1]`), 1), []string{"shape: byte 27 is 'n', want a list of whole numbers"}},
		{"overflow", raw(one(`"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]`), 0), []string{"F32 [4294967296 4294967296] has no size"}},
		{"overflow to one byte", raw(one(`"dtype":"U8","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,1]`), 1), []string{"has no size"}},
		{"leading zero", raw(one(`"dtype":"U8","shape":[01],"data_offsets":[0,1]`), 1), []string{"01 is no whole number"}},
		{"number runs on", raw(one(`"dtype":"U8","shape":[1x],"data_offsets":[0,1]`), 1), []string{"1x is no whole number"}},
		{"no comma in a list", raw(one(`"dtype":"U8","shape":[1 1],"data_offsets":[0,1]`), 1), []string{"want a comma or the list's end"}},
		{"no comma in an object", raw(`{"__metadata__":{} "x":1}`, 1), []string{"want a comma or the object's end"}},
		{"no colon", raw(`{"x" 1}`, 1), []string{"want a colon"}},
		{"bad escape", raw(`{"\x":1}`, 1), []string{"bad JSON"}},
		{"NUL", raw("{\x00", 1), []string{"want a string"}},
		{"half a byte", raw(one(`"dtype":"F4","shape":[3],"data_offsets":[0,1]`), 1), []string{"has no size in whole bytes"}},
		{"three offsets", raw(one(`"dtype":"U8","shape":[1],"data_offsets":[0,1,2]`), 1), []string{"data_offsets [0 1 2]: want begin and end"}},
		{"offsets backwards", raw(one(`"dtype":"U8","shape":[1],"data_offsets":[1,0]`), 1), []string{"data_offsets [1 0]: want begin and end, in this order"}},
		{"huge offsets", raw(one(`"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551616]`), 1), []string{"data_offsets"}},
		{"size is not that of the shape", raw(one(`"dtype":"F32","shape":[2,3],"data_offsets":[0,20]`), 20), []string{`tensor "x": F32 [2 3] needs 24 bytes`, "hold 20"}},
		{"truncated", func(p string) error {
			if err := weightstest.Write(p, f32("first", 1, 2), f32("second", 1, 2, 3, 4)); err != nil {
				return err
			}
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			return os.Truncate(p, info.Size()-5)
		}, []string{`tensor "second": needs 16 bytes, file ends 5 short (download cut?)`}},
		{"wholly cut data", raw(`{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 0), []string{"needs 4 bytes, file ends 4 short"}},
		{"overlap", raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}`, 7), []string{`tensor "b": its data overlaps that of "a" by 1 bytes`}},
		{"hole at the start", raw(one(`"dtype":"U8","shape":[4],"data_offsets":[2,6]`), 6), []string{`tensor "x": 2 bytes before its data belong to no tensor`}},
		{"hole between", raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}}`, 9), []string{`tensor "b": 1 bytes before`}},
		{"bytes after the last", raw(one(`"dtype":"U8","shape":[4],"data_offsets":[0,4]`), 6), []string{"2 bytes after the last tensor"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.safetensors")
			do(t, tt.write(path))
			c, err := weights.Open(filepath.Dir(path))
			mustFail(t, err, append(tt.words, path)...)
			if c != nil {
				t.Error("an error came with a checkpoint")
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	dir := write(t, f32("x", 1))
	path := filepath.Join(dir, "model.safetensors")
	do(t, os.Chmod(path, 0))
	if f, err := os.Open(path); err == nil {
		f.Close()
		t.Skip("this user may read every file")
	}
	_, err := weights.Open(dir)
	mustFail(t, err, path)
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v does not wrap fs.ErrPermission", err)
	}
}

// Which files make up a checkpoint.
func TestFiles(t *testing.T) {
	a, b := f32("a", 1), f32("b", 2)
	type files map[string][]weightstest.Tensor
	tests := []struct {
		name  string
		files files
		index map[string]string // model.safetensors.index.json
		names []string          // nil: an error
		words []string
	}{
		{"single", files{"model.safetensors": {a}}, nil, []string{"a"}, nil},
		{"single leads over strays", files{"model.safetensors": {a}, "other.safetensors": {b}}, nil, []string{"a"}, nil},
		{"shards without an index", files{"x.safetensors": {a}, "y.safetensors": {b}}, nil, []string{"a", "b"}, nil},
		{"a tensor in two files", files{"x.safetensors": {a}, "y.safetensors": {a}}, nil, nil, []string{`tensor "a" is in x.safetensors and in y.safetensors`}},
		{"index", files{"x.safetensors": {a}, "y.safetensors": {b}, "stray.safetensors": {b}}, map[string]string{"a": "x.safetensors", "b": "y.safetensors"}, []string{"a", "b"}, nil},
		{"index settles a tensor in two files", files{"x.safetensors": {a, b}, "y.safetensors": {b}}, map[string]string{"a": "x.safetensors", "b": "y.safetensors"}, []string{"a", "b"}, nil},
		{"a tensor beside the index", files{"x.safetensors": {a, b}}, map[string]string{"a": "x.safetensors"}, []string{"a", "b"}, nil},
		{"two files, unsettled", files{"x.safetensors": {a, f32("c", 1)}, "y.safetensors": {b, f32("c", 1)}}, map[string]string{"a": "x.safetensors", "b": "y.safetensors"}, nil, []string{`tensor "c" is in`}},
		{"missing file", files{"x.safetensors": {a}}, map[string]string{"a": "x.safetensors", "b": "y.safetensors"}, nil, []string{"model.safetensors.index.json", "names 2 files, missing are y.safetensors"}},
		{"file outside", files{"x.safetensors": {a}}, map[string]string{"a": "../x.safetensors"}, nil, []string{"want a file inside"}},
		{"empty map", files{"x.safetensors": {a}}, map[string]string{}, nil, []string{"weight_map is empty"}},
		{"no weights", files{}, nil, nil, []string{"no *.safetensors"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, tensors := range tt.files {
				do(t, weightstest.Write(filepath.Join(dir, name), tensors...))
			}
			if tt.index != nil {
				do(t, weightstest.WriteIndex(dir, tt.index))
			}
			if tt.names == nil {
				_, err := weights.Open(dir)
				mustFail(t, err, append(tt.words, dir)...)
				return
			}
			if c := mustOpen(t, dir); !slices.Equal(c.Names(), tt.names) {
				t.Errorf("names %q, want %q", c.Names(), tt.names)
			}
		})
	}
}

func TestIndexNames(t *testing.T) {
	dir := t.TempDir()
	do(t, weightstest.Write(filepath.Join(dir, "x.safetensors"), f32("a", 1)))
	do(t, weightstest.Write(filepath.Join(dir, "stray.safetensors"), f32("a", 1)))
	index := `{"metadata":{"total_size":4},"weight_map":{"a":"x.safetensors"}}`
	do(t, os.WriteFile(filepath.Join(dir, "my.safetensors.index.json"), []byte(index), 0o666))
	if c := mustOpen(t, dir); !slices.Equal(c.Names(), []string{"a"}) {
		t.Errorf("through an index of another name: %q", c.Names())
	}
	do(t, os.WriteFile(filepath.Join(dir, "your.safetensors.index.json"), []byte(index), 0o666))
	_, err := weights.Open(dir)
	mustFail(t, err, "several indexes", "my.safetensors.index.json", "your.safetensors.index.json")
}

func TestBrokenIndex(t *testing.T) {
	for _, tt := range []struct{ content, words string }{
		{"", "the JSON ends early"},
		{"[]", "want an object"},
		{"{}", "has no weight_map"},
		{`{"weight_map":[]}`, "want an object"},
		{`{"weight_map":{"a":"x"}} {}`, "something follows"},
		{`{"weight_map":{"a":3}}`, `"a": want the name of a file`},
		{`{"weight_map":{"a":"x","a":"y"}}`, `"a" comes twice`},
		{`{"weight_map":{"a":"x"`, "the JSON ends early"},
	} {
		dir := t.TempDir()
		do(t, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(tt.content), 0o666))
		_, err := weights.Open(dir)
		mustFail(t, err, "model.safetensors.index.json", tt.words)
	}
	_, err := weights.Open(filepath.Join(t.TempDir(), "nowhere"))
	mustFail(t, err, "nowhere", "cannot be listed")
}

// An index that is wrong about a tensor is an error when the tensor is asked for.
func TestIndexWrongAboutTensor(t *testing.T) {
	dir := t.TempDir()
	do(t, weightstest.Write(filepath.Join(dir, "x.safetensors"), f32("a", 1)))
	do(t, weightstest.Write(filepath.Join(dir, "y.safetensors"), f32("b", 1)))
	do(t, weightstest.WriteIndex(dir, map[string]string{"a": "x.safetensors", "b": "x.safetensors", "c": "y.safetensors"}))
	r := mustOpen(t, dir).NewReader()
	if _, err := r.Tensor("a", weights.Want{}); err != nil {
		t.Error(err)
	}
	_, err := r.Tensor("b", weights.Want{})
	mustFail(t, err, `tensor "b"`, "the index says x.safetensors holds it, it is in y.safetensors")
	_, err = r.Tensor("c", weights.Want{})
	mustFail(t, err, "y.safetensors", `tensor "c"`, "the index says this file holds it, it does not")
}
