package weights

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// maxHeader is the format's limit for the JSON header, in bytes.
const maxHeader = 100_000_000

// entry is one tensor of one file; data[begin:end] of the bytes after the header.
type entry struct {
	name       string
	dtype      DType
	shape      []int
	begin, end int64
}

// parseHeader reads the JSON header of a file whose data part has dataLen bytes.
// It vouches that the entries, ordered by offset, fill the data part without
// holes and overlaps, and that each has the size of its shape. Its errors name
// the tensor, not the file.
func parseHeader(header []byte, dataLen int64) ([]entry, error) {
	s := &scanner{data: header}
	var entries []entry
	seen := map[string]struct{}{}
	err := s.object(func(name string) error {
		if _, twice := seen[name]; twice {
			return fmt.Errorf("%q comes twice", name)
		}
		seen[name] = struct{}{}
		if name == "__metadata__" {
			var ignored map[string]string
			if err := s.decode(&ignored); err != nil {
				return fmt.Errorf("__metadata__: want an object of strings: %w", err)
			}
			return nil
		}
		e, err := parseEntry(s)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		e.name = name
		entries = append(entries, e)
		return nil
	})
	if err := cmp.Or(err, s.end()); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return entries, checkOffsets(entries, dataLen)
}

func parseEntry(s *scanner) (entry, error) {
	var e entry
	var dtype, shape, offsets bool
	err := s.object(func(key string) error {
		var twice bool
		switch key {
		case "dtype":
			name, err := s.text()
			if err != nil {
				return fmt.Errorf("dtype: %w", err)
			}
			if e.dtype = dtypeByName[name]; e.dtype == 0 {
				return fmt.Errorf("dtype %.40q is unknown (a newer format?)", name)
			}
			dtype, twice = true, dtype
		case "shape":
			dims, err := s.sizes()
			if err != nil {
				return fmt.Errorf("shape: %w", err)
			}
			e.shape = dims
			shape, twice = true, shape
		case "data_offsets":
			at, err := s.sizes()
			if err != nil {
				return fmt.Errorf("data_offsets: %w", err)
			}
			if len(at) != 2 || at[1] < at[0] {
				return fmt.Errorf("data_offsets %v: want begin and end, in this order", at)
			}
			e.begin, e.end = int64(at[0]), int64(at[1])
			offsets, twice = true, offsets
		default:
			return s.skip()
		}
		if twice {
			return fmt.Errorf("%q comes twice", key)
		}
		return nil
	})
	switch {
	case err != nil:
		return e, err
	case !dtype:
		return e, errors.New("has no dtype")
	case !shape:
		return e, errors.New("has no shape")
	case !offsets:
		return e, errors.New("has no data_offsets")
	}
	need, ok := byteSize(e.dtype, e.shape)
	if !ok {
		return e, fmt.Errorf("%s %v has no size in whole bytes that fits 63 bits", e.dtype, e.shape)
	}
	if e.end-e.begin != need {
		return e, fmt.Errorf("%s %v needs %d bytes, its data_offsets [%d, %d] hold %d", e.dtype, e.shape, need, e.begin, e.end, e.end-e.begin)
	}
	return e, nil
}

// byteSize gives the bytes of a tensor, false when they overflow or end in mid-byte.
func byteSize(d DType, shape []int) (int64, bool) {
	if slices.Contains(shape, 0) {
		return 0, true
	}
	n := dtypes[d].bits
	for _, dim := range shape {
		high, low := bits.Mul64(n, uint64(dim))
		if high != 0 {
			return 0, false
		}
		n = low
	}
	return int64(n / 8), n%8 == 0
}

// checkOffsets orders the entries by offset and requires that they fill the data.
func checkOffsets(entries []entry, dataLen int64) error {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	at, before := int64(0), ""
	for _, e := range entries {
		switch {
		case e.begin < at:
			return fmt.Errorf("tensor %q: its data overlaps that of %q by %d bytes", e.name, before, at-e.begin)
		case e.begin > at && e.begin <= dataLen:
			return fmt.Errorf("tensor %q: %d bytes before its data belong to no tensor", e.name, e.begin-at)
		case e.end > dataLen:
			return fmt.Errorf("tensor %q: needs %d bytes, file ends %d short (download cut?)", e.name, e.end-e.begin, e.end-dataLen)
		}
		at, before = e.end, e.name
	}
	if at < dataLen {
		return fmt.Errorf("%d bytes after the last tensor belong to no tensor", dataLen-at)
	}
	return nil
}
