package synth

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/bits"
)

// noise is an endless row of numbers that are close to normally distributed. Number i is a function of the key and i alone, and
// is made of integers and one multiplication, so it has the same bits on every machine.
type noise struct {
	key   uint64
	scale float32
}

// newNoise returns the numbers of a tensor, with mean 0 and the given standard deviation.
func newNoise(seed uint64, tensor string, deviation float64) noise {
	h := fnv.New64a()
	h.Write([]byte(tensor)) // never fails
	return noise{key: mix(h.Sum64() ^ mix(seed+golden)), scale: float32(deviation / unitDeviation)}
}

// golden is the increment of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): 2⁶⁴
// divided by the golden ratio.
const golden = 0x9e3779b97f4a7c15

// mix is the output function of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

const (
	one = 1 << 16 // the integers count 65536ths
	// center is the mean of the sum that integer makes: 16 of 32 coins, and half of each fraction's largest value.
	center = 16*one + (one - 1)
)

// unitDeviation is the standard deviation of the integers: √(32·¼ + 2·1/12) ones, to a part in 10⁹.
var unitDeviation = one * math.Sqrt(8+1.0/6)

// integer returns number i before it is scaled: the number of heads of 32 coins, which is normal but for its steps, plus two
// fractions, which fill the steps. It lies within ±17 ones, or 5.95 standard deviations.
func (n noise) integer(i uint64) int32 {
	h := mix(n.key + i*golden)
	return int32(bits.OnesCount32(uint32(h>>32)))<<16 + int32(h>>16&0xffff) + int32(h&0xffff) - center
}

// value returns number i.
func (n noise) value(i uint64) float32 { return float32(n.integer(i)) * n.scale }

// f32 writes numbers from i on as F32.
func (n noise) f32(dst []byte, i uint64) {
	for ; len(dst) >= 4; dst, i = dst[4:], i+1 {
		binary.LittleEndian.PutUint32(dst, math.Float32bits(n.value(i)))
	}
}

// bf16 writes numbers from i on as BF16.
func (n noise) bf16(dst []byte, i uint64) {
	for ; len(dst) >= 8; dst, i = dst[8:], i+4 {
		a, b, c, d := toBF16(n.value(i)), toBF16(n.value(i+1)), toBF16(n.value(i+2)), toBF16(n.value(i+3))
		binary.LittleEndian.PutUint64(dst, uint64(a)|uint64(b)<<16|uint64(c)<<32|uint64(d)<<48)
	}
	for ; len(dst) >= 2; dst, i = dst[2:], i+1 {
		binary.LittleEndian.PutUint16(dst, toBF16(n.value(i)))
	}
}

// toBF16 rounds a finite number to nearest, ties to even.
func toBF16(v float32) uint16 {
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
