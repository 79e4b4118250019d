//go:build !unix

package cli

import "errors"

// freeSpace does not know: the disk will say when it is full.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
