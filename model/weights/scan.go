package weights

import (
	"context"
	"encoding/binary"
	"fmt"
)

// NonFinite says where a tensor holds values that are no finite number.
type NonFinite struct {
	Name  string
	File  string
	DType DType
	NaN   int64
	Inf   int64 // F8E4M3 has none
	First int64 // row-major index of the first of either
}

// Scan is the result of reading all floating-point data once.
type Scan struct {
	Tensors   int   // floating-point tensors read
	Bytes     int64 // their size
	NonFinite []NonFinite
}

// floatFormat describes how a little-endian float tells that it is not finite:
// all exponent bits are set (for F8E4M3: all but the sign).
type floatFormat struct {
	bytes    int
	exponent uint64
	mantissa uint64 // any of these set: NaN; none: infinity
	allNaN   bool
}

var floatFormats = map[DType]floatFormat{
	F64:    {8, 0x7ff0_0000_0000_0000, 0x000f_ffff_ffff_ffff, false},
	F32:    {4, 0x7f80_0000, 0x007f_ffff, false},
	BF16:   {2, 0x7f80, 0x007f, false},
	F16:    {2, 0x7c00, 0x03ff, false},
	F8E5M2: {1, 0x7c, 0x03, false},
	F8E4M3: {1, 0x7f, 0x00, true},
}

// scanChunk is how much is read between two looks at the context, in bytes.
const scanChunk = 1 << 20

// ScanNonFinite reads every floating-point tensor and reports those that hold NaN
// or infinity, in the order of the files. It pages the whole checkpoint in, marks
// nothing as asked for, and returns ctx's error, with what it has so far, when ctx ends.
func (c *Checkpoint) ScanNonFinite(ctx context.Context) (Scan, error) {
	var result Scan
	if c.closed.Load() {
		return result, fmt.Errorf("weights: %s: scan: the checkpoint is closed", c.dir)
	}
	for _, s := range c.shards {
		for _, e := range s.entries {
			format, ok := floatFormats[e.dtype]
			if !ok {
				continue
			}
			found := NonFinite{Name: e.name, File: s.name, DType: e.dtype, First: -1}
			for at := e.begin; at < e.end; at += scanChunk {
				if err := ctx.Err(); err != nil {
					return result, fmt.Errorf("weights: %s: scan stopped at tensor %q: %w", c.dir, e.name, err)
				}
				format.count(&found, s.data[at:min(at+scanChunk, e.end)], (at-e.begin)/int64(format.bytes))
			}
			result.Tensors++
			result.Bytes += e.end - e.begin
			if found.First >= 0 {
				result.NonFinite = append(result.NonFinite, found)
			}
		}
	}
	return result, nil
}

// count adds the values of data, the first of which has the index base. Eight
// bytes at a time: adding the lowest exponent bit carries into the sign's place
// exactly where all exponent bits are set.
func (f floatFormat) count(found *NonFinite, data []byte, base int64) {
	width := 8 * f.bytes
	var exponents, lowest, signs uint64
	for shift := 0; shift < 64; shift += width {
		exponents |= f.exponent << shift
		lowest |= (f.exponent & -f.exponent) << shift
		signs |= 1 << (width - 1) << shift
	}
	whole := len(data) &^ 7
	for at := 0; at < whole; at += 8 {
		word := binary.LittleEndian.Uint64(data[at:])
		if (word&exponents+lowest)&signs != 0 {
			f.countWord(found, word, 8, base+int64(at/f.bytes))
		}
	}
	if rest := data[whole:]; len(rest) > 0 {
		var padded [8]byte
		copy(padded[:], rest)
		f.countWord(found, binary.LittleEndian.Uint64(padded[:]), len(rest), base+int64(whole/f.bytes))
	}
}

func (f floatFormat) countWord(found *NonFinite, word uint64, bytes int, index int64) {
	for at := 0; at < bytes; at += f.bytes {
		if word&f.exponent == f.exponent {
			if f.allNaN || word&f.mantissa != 0 {
				found.NaN++
			} else {
				found.Inf++
			}
			if found.First < 0 {
				found.First = index
			}
		}
		word >>= 8 * f.bytes // a shift by 64 gives 0
		index++
	}
}
