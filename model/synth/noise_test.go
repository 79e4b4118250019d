package synth

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestNoiseIsNormal compares moments and tails of many numbers with those of a normal distribution.
func TestNoiseIsNormal(t *testing.T) {
	const n = 1 << 22
	const deviation = 0.02
	for seed := range uint64(3) {
		numbers := newNoise(seed, "tensor", deviation)
		var sum, squares, fourths, beyond3, neighbours float64
		last := 0.0
		for i := range uint64(n) {
			v := float64(numbers.value(i)) / deviation
			sum, squares, fourths, neighbours = sum+v, squares+v*v, fourths+v*v*v*v, neighbours+v*last
			last = v
			if math.Abs(v) > 3 {
				beyond3++
			}
			if math.Abs(v) > 5.95 {
				t.Fatalf("seed %d: number %d is %g standard deviations from 0", seed, i, v)
			}
		}
		// Five standard errors of each estimate. Fourth cumulants add: 32 coins have −1/8 each, two fractions −1/120, so the fourth
		// moment is 3 − (4 + 1/60) / (8 + 1/6)². The share is what came out; a normal distribution has 0.0027.
		root := math.Sqrt(n)
		for _, c := range []struct {
			what            string
			got, want, most float64
		}{
			{"mean", sum / n, 0, 5 / root},
			{"variance", squares / n, 1, 5 * math.Sqrt2 / root},
			{"fourth moment", fourths / n, 3 - (4+1/60.0)/((8+1/6.0)*(8+1/6.0)), 5 * math.Sqrt(96) / root},
			{"product of neighbours", neighbours / n, 0, 5 / root},
			{"share beyond 3 deviations", beyond3 / n, 0.0023, 0.00015},
		} {
			if math.Abs(c.got-c.want) > c.most {
				t.Errorf("seed %d: %s is %g, want %g ± %g", seed, c.what, c.got, c.want, c.most)
			}
		}
	}
}

// TestNoiseDependsOnSeedNameAndPlace: no two rows of numbers are one shifted.
func TestNoiseDependsOnSeedNameAndPlace(t *testing.T) {
	seen := map[int32]string{}
	for _, row := range []struct {
		seed uint64
		name string
	}{{0, "a"}, {1, "a"}, {0, "b"}, {1 << 63, "a"}} {
		numbers := newNoise(row.seed, row.name, 1)
		equal := 0
		for i := range uint64(1000) {
			v := numbers.integer(i)
			if v != newNoise(row.seed, row.name, 1).integer(i) {
				t.Fatalf("seed %d, %s: number %d differs when it is asked for again", row.seed, row.name, i)
			}
			if seen[v] != "" && seen[v] != row.name {
				equal++
			}
			seen[v] = row.name
		}
		if equal > 20 { // of 1000 numbers out of some 10⁶ values
			t.Errorf("seed %d, %s: %d numbers also stand in another row", row.seed, row.name, equal)
		}
	}
}

func TestToBF16(t *testing.T) {
	for _, c := range []struct {
		bits uint32
		want uint16
	}{
		{0x3f800000, 0x3f80},
		{0x3f807fff, 0x3f80}, // below the middle
		{0x3f808000, 0x3f80}, // the middle, to even
		{0x3f818000, 0x3f82}, // the middle, to even
		{0x3f808001, 0x3f81},
		{0xbf818000, 0xbf82},
		{0x3fffffff, 0x4000}, // into the next power of two
		{0, 0},
	} {
		if got := toBF16(math.Float32frombits(c.bits)); got != c.want {
			t.Errorf("%#x: %#x, want %#x", c.bits, got, c.want)
		}
	}
}

// f8Value is what a code of F8_E4M3 means (OCP 8-bit floating point, revision 1.0): bias 7, no infinities.
func f8Value(code byte) float64 {
	exponent, fraction := int(code>>3&15), float64(code&7)/8
	v := math.Ldexp(1+fraction, exponent-7)
	if exponent == 0 {
		v = math.Ldexp(fraction, -6)
	}
	if code&0x80 != 0 {
		return -v
	}
	return v
}

// TestToF8 looks at every code and at what lies between two of them.
func TestToF8(t *testing.T) {
	for code := range byte(0x7f) {
		v := f8Value(code)
		if got := toF8(float32(v)); got != code {
			t.Errorf("%g: code %#x, want %#x", v, got, code)
		}
		if got := toF8(-float32(v)); got != code|0x80 {
			t.Errorf("-%g: code %#x, want %#x", v, got, code|0x80)
		}
		if code == 0x7e {
			continue
		}
		middle := float32((v + f8Value(code+1)) / 2)
		for _, c := range []struct {
			v    float32
			want byte
		}{{math.Nextafter32(middle, 0), code}, {middle, code + code&1}, {math.Nextafter32(middle, 500), code + 1}} {
			if got := toF8(c.v); got != c.want {
				t.Errorf("%g between %#x and the next: code %#x, want %#x", c.v, code, got, c.want)
			}
		}
	}
	if got := toF8(math.Nextafter32(f8Max, 500)); got != 0x7e {
		t.Errorf("just above 448: code %#x, want 0x7e", got)
	}
}

func BenchmarkNoise(b *testing.B) {
	buf := make([]byte, 1<<20)
	for _, c := range []struct {
		name string
		fill func(noise, uint64)
	}{
		{"bf16", func(n noise, i uint64) { n.bf16(buf, i) }},
		{"f32", func(n noise, i uint64) { n.f32(buf, i) }},
		{"f8", func(n noise, _ uint64) { n.f8(buf, make([]float32, 64), 0, 8192) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			n := newNoise(1, "tensor", 0.02)
			b.SetBytes(int64(len(buf)))
			i := uint64(0)
			for b.Loop() {
				c.fill(n, i)
				i += uint64(len(buf))
			}
			if binary.LittleEndian.Uint64(buf) == 0 {
				b.Error("nothing was written")
			}
		})
	}
}
