//go:build unix

package cli

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that this user may still write below a directory.
func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // their types differ between systems
}
