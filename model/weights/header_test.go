package weights

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever the header holds, the parser does not panic, and what it accepts lies
// inside the data, in order, without holes, with the size of its shape.
func FuzzHeader(f *testing.F) {
	for _, pattern := range []string{"../../test/models/*/*.safetensors", "../../test/models/random/*/*.safetensors"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			f.Fatalf("no seeds in %s (%v)", pattern, err)
		}
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			n := int(binary.LittleEndian.Uint64(data))
			f.Add(data[8:8+n], int64(len(data)-8-n))
		}
	}
	for _, header := range []string{
		"", "{", "{}", "null", "[]", "{}x", `{"":{}}`, `{"__metadata__":null}`,
		`{"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`,
		`{"x":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[4,4]}}`,
		`{"x":{"dtype":"U8","shape":[9223372036854775807,2],"data_offsets":[0,4]}}`,
		`{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`,
		`{"x":{"dtype":"U8","shape":[4],"data_offsets":[9223372036854775803,9223372036854775807]}}`,
		`{"x":{"dtype":"F4","shape":[8],"data_offsets":[0,4],"extra":[{"a":[]}]}}`,
		` { "\u00e9\"é" : {"dtype" : "U8" , "shape" : [ 4 ] , "data_offsets" : [ 0 , 4 ] } } `,
		"{\"\xff\":{\"dtype\":\"U8\",\"shape\":[04],\"data_offsets\":[0,4]}}",
	} {
		f.Add([]byte(header), int64(4))
	}
	f.Fuzz(func(t *testing.T, header []byte, dataLen int64) {
		if dataLen < 0 {
			return
		}
		entries, err := parseHeader(header, dataLen)
		if err != nil {
			return
		}
		if !json.Valid(header) {
			t.Fatal("accepted what is no JSON")
		}
		at := int64(0)
		for _, e := range entries {
			if e.begin != at || e.end < e.begin || e.end > dataLen {
				t.Fatalf("%q has [%d, %d] after %d of %d bytes", e.name, e.begin, e.end, at, dataLen)
			}
			at = e.end
			bits := int64(dtypes[e.dtype].bits)
			for _, d := range e.shape {
				bits *= int64(d)
			}
			if bits != 8*(e.end-e.begin) {
				t.Fatalf("%q %s %v has %d bytes", e.name, e.dtype, e.shape, e.end-e.begin)
			}
		}
		if at != dataLen {
			t.Fatalf("%d of %d bytes accounted for", at, dataLen)
		}
	})
}

// A header as large as those of the largest models: V3 has about 91,000 tensors
// in 163 files.
func BenchmarkParseHeader(b *testing.B) {
	const tensors = 91_000
	var header strings.Builder
	for i := range tensors {
		fmt.Fprintf(&header, `%c"model.layers.%d.mlp.experts.%d.gate_proj.weight":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[%d,%d]}`, "{,"[min(i, 1)], i/1500, i%1500, 8*i, 8*i+8)
	}
	header.WriteString("}")
	b.SetBytes(int64(header.Len()))
	for b.Loop() {
		if _, err := parseHeader([]byte(header.String()), 8*tensors); err != nil {
			b.Fatal(err)
		}
	}
}
