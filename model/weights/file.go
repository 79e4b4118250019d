package weights

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// shard is one mapped file.
type shard struct {
	name    string // as the index or the directory calls it
	mapping []byte // the whole file, read-only
	data    []byte // mapping after the header
	entries []entry
}

// openShard reads and checks the header, then maps the file.
func openShard(path, name string) (*shard, error) {
	s, err := readShard(path, name)
	if err != nil {
		return nil, fmt.Errorf("weights: %s: %w", path, err)
	}
	return s, nil
}

func readShard(path, name string) (*shard, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch size := info.Size(); {
	case info.IsDir():
		return nil, errors.New("is a directory, want a safetensors file")
	case !info.Mode().IsRegular():
		return nil, errors.New("is no regular file")
	case size == 0:
		return nil, errors.New("is empty (download cut?)")
	case size < 8:
		return nil, fmt.Errorf("has %d bytes, a safetensors file begins with the 8-byte length of its header (download cut?)", size)
	case size > math.MaxInt:
		return nil, fmt.Errorf("has %d bytes, more than this machine can map", size)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping outlives it
	header, err := readHeader(f, info.Size())
	if err != nil {
		return nil, err
	}
	dataAt := 8 + int64(len(header))
	entries, err := parseHeader(header, info.Size()-dataAt)
	if err != nil {
		return nil, err
	}
	mapping, err := mapFile(f, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", info.Size(), err)
	}
	return &shard{name: name, mapping: mapping, data: mapping[dataAt:], entries: entries}, nil
}

func readHeader(f *os.File, fileSize int64) ([]byte, error) {
	var length [8]byte
	if _, err := io.ReadFull(f, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case bytes.Equal(length[:], []byte("version ")):
		return nil, errors.New("is a Git LFS pointer, not the weights: fetch them with git lfs pull")
	case n > maxHeader:
		return nil, fmt.Errorf("header length %d is over the limit of %d (the file has %d bytes): not a safetensors file, or damaged", n, maxHeader, fileSize)
	case int64(n) > fileSize-8:
		return nil, fmt.Errorf("header needs %d bytes, file ends %d short (download cut?)", n, int64(n)-(fileSize-8))
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(f, header); err != nil {
		return nil, err
	}
	return header, nil
}
