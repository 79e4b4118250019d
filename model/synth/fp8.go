package synth

import "math"

// f8Max is the largest number of F8_E4M3.
const f8Max = 448

// leastLargest keeps the scale of a block of zeros above 0.
const leastLargest = 1e-12

// f8 writes rows of a matrix as F8_E4M3, and the scales of their blocks: the largest magnitude of a block divided by 448, by which
// its numbers are divided before they are rounded. The rows begin at a block's first one and are those of one row of blocks.
// // dst (rows, cols), scales (blocks(cols))
func (n noise) f8(dst []byte, scales []float32, row, cols int) {
	rows := len(dst) / cols
	var held [block * block]int32 // the integers of one block
	for b := range scales {
		from, width := b*block, min(block, cols-b*block)
		least, most := int32(0), int32(0)
		for r := range rows {
			at := uint64(row+r)*uint64(cols) + uint64(from)
			line := held[r*block:][:width]
			for c := range line {
				v := n.integer(at + uint64(c))
				line[c] = v
				least, most = min(least, v), max(most, v)
			}
		}
		scale := max(float32(max(most, -least))*n.scale, leastLargest) / f8Max
		scales[b] = scale
		for r := range rows {
			line := held[r*block:][:width]
			out := dst[r*cols+from:][:width]
			for c, v := range line {
				out[c] = toF8(float32(v) * n.scale / scale)
			}
		}
	}
}

// toF8 rounds a number of at most f8Max, or a rounding error above it, to nearest, ties to even.
func toF8(v float32) byte {
	b := math.Float32bits(v)
	sign, b := byte(b>>24&0x80), b&^(1<<31)
	const (
		smallest = (127 - 6) << 23 // 2⁻⁶, below which steps are 2⁻⁹
		steps    = (127 + 23 - 9) << 23
		most     = 0x7e // 448
	)
	if b < smallest {
		// A float32 of this size has steps of 2⁻⁹: the addition rounds.
		return sign | byte(math.Float32bits(math.Float32frombits(b)+math.Float32frombits(steps))-steps)
	}
	b += 0x7ffff + b>>20&1 // half a step of 3 bits of mantissa
	return sign | byte(min(b>>20-(127-7)<<3, most))
}
