package config

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile returns the content of a file that the user named: any that can be read and ends within limit bytes, so pipes and
// /dev/null too, but no directory. A pipe blocks until its writer has ended.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a directory, want a file")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("is longer than %d KiB", limit>>10)
	}
	return data, err
}
