package weights

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moerack/moerack/internal/readfile"
)

const (
	singleFile  = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
	indexSuffix = ".safetensors.index.json"
)

// Open opens the checkpoint in dir: model.safetensors; or else the shards named
// by model.safetensors.index.json or by the only *.safetensors.index.json; or else
// all *.safetensors. It reads the headers of all files and none of their data.
// Errors name the file and, where one is at fault, the tensor.
func Open(dir string) (*Checkpoint, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("weights: %s: cannot be listed, want the directory of a model: %w", dir, err)
	}
	var files, indexes []string
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasSuffix(name, indexSuffix):
			indexes = append(indexes, name)
		case strings.HasSuffix(name, ".safetensors"):
			files = append(files, name)
		}
	}
	c := &Checkpoint{dir: dir, tensors: map[string]*tensor{}}
	switch {
	case slices.Contains(files, singleFile):
		err = c.openFiles([]string{singleFile}, nil)
	case slices.Contains(indexes, indexFile):
		err = c.openIndex(indexFile)
	case len(indexes) == 1:
		err = c.openIndex(indexes[0])
	case len(indexes) > 1:
		err = fmt.Errorf("weights: %s: several indexes (%s) and none is %s: remove all but one", dir, strings.Join(indexes, ", "), indexFile)
	case len(files) > 0:
		err = c.openFiles(files, nil)
	default:
		err = fmt.Errorf("weights: %s: no *.safetensors: is this the directory of a Hugging Face model, and is its download complete?", dir)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// openIndex opens the shards that an index names.
func (c *Checkpoint) openIndex(name string) error {
	path := filepath.Join(c.dir, name)
	weightMap, err := readIndex(path)
	if err != nil {
		return fmt.Errorf("weights: %s: %w", path, err)
	}
	var files, missing []string
	for _, file := range weightMap {
		if slices.Contains(files, file) {
			continue
		}
		files = append(files, file)
		if !filepath.IsLocal(file) {
			return fmt.Errorf("weights: %s: weight_map names %q, want a file inside the model's directory", path, file)
		}
		if _, err := os.Stat(filepath.Join(c.dir, file)); errors.Is(err, os.ErrNotExist) {
			missing = append(missing, file)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("weights: %s: names %d files, missing are %s (download incomplete?)", path, len(files), enumerate(missing, 5))
	}
	slices.Sort(files)
	return c.openFiles(files, weightMap)
}

// maxIndex bounds the index, in bytes; that of a model with 200,000 tensors has 20 MB.
const maxIndex = 256 << 20

// readIndex gives the index's map from tensor to file.
func readIndex(path string) (map[string]string, error) {
	data, err := readfile.Regular(path, maxIndex)
	if err != nil {
		return nil, err
	}
	weightMap := map[string]string{}
	found := false
	scan := &scanner{data: data}
	err = scan.object(func(key string) error {
		if key != "weight_map" {
			return scan.skip()
		}
		found = true
		return scan.object(func(tensor string) error {
			file, err := scan.text()
			if err != nil || file == "" {
				return fmt.Errorf("weight_map: %q: want the name of a file", tensor)
			}
			if _, twice := weightMap[tensor]; twice {
				return fmt.Errorf("weight_map: %q comes twice", tensor)
			}
			weightMap[tensor] = file
			return nil
		})
	})
	err = cmp.Or(err, scan.end())
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, errors.New("has no weight_map")
	case len(weightMap) == 0:
		return nil, errors.New("weight_map is empty")
	}
	return weightMap, nil
}

// openFiles maps the files. With a weight map a tensor that several files hold
// is that of the file the map names; without, it is an error.
func (c *Checkpoint) openFiles(files []string, weightMap map[string]string) error {
	for _, name := range files {
		s, err := openShard(filepath.Join(c.dir, name), name)
		if err != nil {
			return err
		}
		c.shards = append(c.shards, s)
		for i := range s.entries {
			t := &tensor{entry: &s.entries[i], shard: s}
			if other, twice := c.tensors[t.name]; twice {
				switch weightMap[t.name] {
				case name:
				case other.shard.name:
					continue
				default:
					return fmt.Errorf("weights: %s: tensor %q is in %s and in %s: remove the file that does not belong here", c.dir, t.name, other.shard.name, name)
				}
			}
			c.tensors[t.name] = t
		}
	}
	for name, file := range weightMap {
		if t := c.tensors[name]; t == nil || t.shard.name != file {
			c.misplaced = addTo(c.misplaced, name, file)
		}
	}
	return nil
}

func addTo(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// enumerate joins names, and counts those after the first few.
func enumerate(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}
