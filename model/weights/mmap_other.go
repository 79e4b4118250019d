//go:build !unix

package weights

import (
	"io"
	"os"
	"unsafe"
)

// mapFile reads the whole file: this system has no mmap that we use, so a
// checkpoint takes its size in memory.
func mapFile(f *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), data)
	return data, err
}

func unmapFile([]byte) error { return nil }

// mapMemory gives zeroed memory of the Go heap, aligned to a cache line.
func mapMemory(size int) ([]byte, error) {
	data := make([]byte, size+arenaAlign)
	at := -int(uintptr(unsafe.Pointer(&data[0]))) & (arenaAlign - 1)
	return data[at : at+size : at+size], nil
}

func unmapMemory([]byte) error { return nil }
