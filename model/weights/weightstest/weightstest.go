// Package weightstest writes safetensors files, whole or broken on purpose, for
// tests. It shares no code with the reader it tests and checks nothing.
package weightstest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Tensor is one tensor to write; Data may have any length, also a wrong one.
type Tensor struct {
	Name  string
	DType string // as the format spells it: "F32", "BF16", "F8_E4M3", …
	Shape []int
	Data  []byte // little-endian
}

// Write writes a file with the tensors in the given order, the header padded with
// spaces to a multiple of 8 as writers do.
func Write(path string, tensors ...Tensor) error {
	header, data := Layout(tensors...)
	header += strings.Repeat(" ", -len(header)&7)
	return WriteRaw(path, uint64(len(header)), header, data)
}

// Layout gives the JSON header, without padding, and the data of a file.
func Layout(tensors ...Tensor) (header string, data []byte) {
	var text strings.Builder
	text.WriteString(`{"__metadata__":{"format":"pt"}`)
	for _, t := range tensors {
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		name, _ := json.Marshal(t.Name) // a string always has a JSON form
		dims, _ := json.Marshal(shape)
		fmt.Fprintf(&text, `,%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, t.DType, dims, len(data), len(data)+len(t.Data))
		data = append(data, t.Data...)
	}
	text.WriteString("}")
	return text.String(), data
}

// WriteRaw writes a file from its three parts, whatever they hold.
func WriteRaw(path string, headerLen uint64, header string, data []byte) error {
	file := binary.LittleEndian.AppendUint64(nil, headerLen)
	file = append(file, header...)
	return os.WriteFile(path, append(file, data...), 0o666)
}

// WriteIndex writes model.safetensors.index.json with a map from tensor to file.
func WriteIndex(dir string, weightMap map[string]string) error {
	index, err := json.Marshal(map[string]any{"metadata": map[string]any{}, "weight_map": weightMap})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), index, 0o666)
}

// F32 gives float32 data.
func F32(values ...float32) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

// BF16 gives bfloat16 data, cut off to the upper half of each float32.
func BF16(values ...float32) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
	}
	return data
}
