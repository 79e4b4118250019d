package readfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRegular(t *testing.T) {
	dir := t.TempDir()
	file, link, dangling := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{link: file, dangling: filepath.Join(dir, "gone")} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{file, link} {
		if data, err := Regular(path, 5); err != nil || string(data) != "12345" {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	for _, tt := range []struct {
		path    string
		limit   int64
		want    string
		missing bool
	}{
		{file, 4, "has 5 bytes, the limit is 4", false},
		{dir, 9, "is a directory", false},
		{os.DevNull, 9, "is no regular file", false},
		{filepath.Join(dir, "none"), 9, "no such file", true},
		{dangling, 9, "is a symbolic link to", false},
	} {
		if _, err := Regular(tt.path, tt.limit); err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, fs.ErrNotExist) != tt.missing {
			t.Errorf("%s: %v, want one that says %q", tt.path, err, tt.want)
		}
	}
}
