package script

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
)

// tensorEntry is a tensor in the header of a safetensors file.
type tensorEntry struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// spoils are the ways to spoil a checkpoint of one file. They change header or data, or return the file to write.
var spoils = map[string]func(header map[string]tensorEntry, data []byte) []byte{
	"truncated": func(h map[string]tensorEntry, data []byte) []byte { return encode(h, data[:len(data)-1000]) },
	"overlap": func(h map[string]tensorEntry, data []byte) []byte {
		e := h["model.norm.weight"]
		first := h["lm_head.weight"].Offsets[0]
		e.Offsets = [2]int{first, first + e.Offsets[1] - e.Offsets[0]}
		h["model.norm.weight"] = e
		return encode(h, data)
	},
	"huge-header": func(h map[string]tensorEntry, data []byte) []byte {
		file := encode(h, data)
		binary.LittleEndian.PutUint64(file, 1<<62)
		return file
	},
	// The other name keeps the file without holes.
	"missing-tensor": func(h map[string]tensorEntry, data []byte) []byte {
		h["model.nothing.weight"] = h["model.layers.1.mlp.gate.weight"]
		delete(h, "model.layers.1.mlp.gate.weight")
		return encode(h, data)
	},
	"wrong-shape": func(h map[string]tensorEntry, data []byte) []byte {
		e := h["model.layers.1.mlp.gate.weight"]
		slices.Reverse(e.Shape)
		h["model.layers.1.mlp.gate.weight"] = e
		return encode(h, data)
	},
	// NaN in layer 1, in the norm before attention, reaches every row.
	"nan": func(h map[string]tensorEntry, data []byte) []byte {
		binary.LittleEndian.PutUint16(data[h["model.layers.1.input_layernorm.weight"].Offsets[0]:], uint16(math.Float32bits(float32(math.NaN()))>>16))
		return encode(h, data)
	},
	// NaN in the whole row of id 0, which padding rows look up.
	"nan-padding": func(h map[string]tensorEntry, data []byte) []byte {
		e := h["model.embed_tokens.weight"]
		for i := range e.Shape[1] {
			binary.LittleEndian.PutUint16(data[e.Offsets[0]+2*i:], uint16(math.Float32bits(float32(math.NaN()))>>16))
		}
		return encode(h, data)
	},
	"unused": func(h map[string]tensorEntry, data []byte) []byte {
		h["model.layers.0.leftover.weight"] = tensorEntry{"F32", []int{1}, [2]int{len(data), len(data) + 4}}
		return encode(h, append(data, 0, 0, 0, 0))
	},
	// The header ends at an odd place, and with it begins the data.
	"misaligned": func(h map[string]tensorEntry, data []byte) []byte {
		file := encode(h, nil)
		binary.LittleEndian.PutUint64(file, uint64(len(file)-8+1))
		return append(append(file, ' '), data...)
	},
}

// copyModel makes "copymodel MODEL DIR": a copy that a script may change.
func copyModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: copymodel MODEL DIR")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(args[0])))
}

// spoil makes "spoil HOW MODEL DIR": a copy of a model with one BF16 file, broken in one of the ways above.
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 || spoils[args[0]] == nil {
		ts.Fatalf("usage: spoil HOW MODEL DIR, HOW one of %v", slices.Sorted(maps.Keys(spoils)))
	}
	dir := ts.MkAbs(args[2])
	ts.Check(os.CopyFS(dir, os.DirFS(args[1])))
	path := filepath.Join(dir, "model.safetensors")
	file, err := os.ReadFile(path)
	ts.Check(err)
	n := binary.LittleEndian.Uint64(file)
	var header map[string]tensorEntry
	fields := map[string]json.RawMessage{}
	ts.Check(json.Unmarshal(file[8:8+n], &fields))
	delete(fields, "__metadata__")
	text, err := json.Marshal(fields)
	ts.Check(err)
	ts.Check(json.Unmarshal(text, &header))
	ts.Check(os.WriteFile(path, spoils[args[0]](header, file[8+n:]), 0o600))
}

// encode writes header and data as a safetensors file.
func encode(header map[string]tensorEntry, data []byte) []byte {
	text, err := json.Marshal(header)
	if err != nil {
		panic("script: safetensors header: " + err.Error()) // plain numbers and texts encode
	}
	text = append(text, bytes.Repeat([]byte{' '}, (8-len(text)%8)%8)...)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(file, text...), data...)
}
