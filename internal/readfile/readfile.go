// Package readfile reads small files that somebody else wrote: never from a pipe or device that could block or not end, never
// more than a limit.
package readfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Regular returns the content of a regular file of at most limit bytes; errors name the path. A missing file is an error that is fs.ErrNotExist; a
// symbolic link whose target is missing is another error, because somebody meant the file to be there. It does not block.
func Regular(path string, limit int64) ([]byte, error) {
	refuse := func(format string, args ...any) ([]byte, error) {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf(format, args...)}
	}
	info, err := os.Stat(path) // before opening: opening a pipe blocks
	if errors.Is(err, fs.ErrNotExist) {
		if target, linkErr := os.Readlink(path); linkErr == nil {
			return refuse("is a symbolic link to %s, which is not there (download or copy cut?)", target)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return refuse("is a directory, want a file")
	case !info.Mode().IsRegular():
		return refuse("is no regular file (%s)", info.Mode().Type())
	case info.Size() > limit:
		return refuse("has %d bytes, the limit is %d", info.Size(), limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
