package weights

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Entry describes a tensor that is to be written.
type Entry struct {
	Name  string
	DType DType
	Shape []int
}

// newShard is a file to be written. Its data begin behind the header, those of wide types first, so that each tensor lies aligned.
type newShard struct {
	name    string
	entries []entry // in the order of their data
	header  []byte  // length and JSON
	bytes   int64   // of all tensors
}

// planShards puts tensors into files with no more than so many bytes of data, in their order; a larger tensor has a file of its own. Scales stay with the
// matrix before them.
func planShards(tensors []Entry, most int64) ([]newShard, error) {
	var shards []newShard
	seen := map[string]bool{}
	for i, t := range tensors {
		size, ok := byteSize(t.DType, t.Shape)
		if !ok || seen[t.Name] {
			return nil, fmt.Errorf("weights: tensor %q, %s %v, cannot be written: it is too large, or comes twice", t.Name, t.DType, t.Shape)
		}
		seen[t.Name] = true
		scales := i > 0 && strings.HasPrefix(t.Name, tensors[i-1].Name+scaleSuffix)
		if last := len(shards) - 1; last < 0 || shards[last].bytes+size > most && !scales {
			shards = append(shards, newShard{})
		}
		s := &shards[len(shards)-1]
		s.entries = append(s.entries, entry{name: t.Name, dtype: t.DType, shape: t.Shape, end: size})
		s.bytes += size
	}
	for i := range shards {
		shards[i].name = singleFile
		if len(shards) > 1 {
			shards[i].name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		}
		if err := shards[i].place(); err != nil {
			return nil, fmt.Errorf("weights: %s: header: %w", shards[i].name, err)
		}
	}
	return shards, nil
}

// place gives each tensor its place in the data and makes the header, padded so that the data begin at a cache line.
func (s *newShard) place() error {
	slices.SortStableFunc(s.entries, func(a, b entry) int { return int(dtypes[b.dtype].align) - int(dtypes[a.dtype].align) })
	var text strings.Builder
	text.WriteString(`{"__metadata__":{"format":"pt"}`)
	at := int64(0)
	for i := range s.entries {
		e := &s.entries[i]
		e.begin, e.end = at, at+e.end
		at = e.end
		name, err := json.Marshal(e.name)
		if err != nil {
			return err
		}
		value, err := json.Marshal(map[string]any{"dtype": e.dtype.String(), "shape": e.shape, "data_offsets": []int64{e.begin, e.end}})
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, ",%s:%s", name, value)
	}
	text.WriteByte('}')
	for (text.Len()+8)%arenaAlign != 0 {
		text.WriteByte(' ')
	}
	s.header = append(binary.LittleEndian.AppendUint64(nil, uint64(text.Len())), text.String()...)
	return nil
}

// index gives the model.safetensors.index.json of several files.
func index(shards []newShard) ([]byte, error) {
	files, bytes := map[string]string{}, int64(0)
	for _, s := range shards {
		for _, e := range s.entries {
			files[e.name] = s.name
		}
		bytes += s.bytes
	}
	return json.MarshalIndent(map[string]any{"metadata": map[string]any{"total_size": bytes}, "weight_map": files}, "", "  ")
}
