package simd_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/moerack/moerack/kernels"
)

// cold is so many bytes of weights that none is in a cache when its turn comes again.
const cold = 192 << 20

var benchFormats = []struct {
	name   string
	format kernels.Format
	bytes  int
}{{"f32", kernels.F32, 4}, {"bf16", kernels.BF16, 2}, {"f16", kernels.F16, 2}, {"f8", kernels.F8E4M3, 1}, {"i8", kernels.I8, 1}}

// benchWeights returns matrices of one shape over the same memory of random bits that stand for finite numbers, which is larger than caches
// if there are few rows, since those wait for weights.
func benchWeights(r *rand.Rand, f kernels.Format, size, out, in, rows int) []kernels.Weight {
	n := 1
	if rows <= 16 {
		n = max(1, cold/(out*in*size))
	}
	all := make([]kernels.Weight, n)
	for i := range all {
		w := kernels.Weight{Format: f, Out: out, In: in, Stride: in}
		switch f {
		case kernels.F32:
			w.F32 = dense(r, out, in).Data
		case kernels.BF16, kernels.F16:
			w.U16 = make([]uint16, out*in)
			for k := range w.U16 {
				w.U16[k] = uint16(r.IntN(2)<<15 | 0x3c00 + r.IntN(0x300))
			}
		case kernels.F8E4M3:
			w.U8 = make([]uint8, out*in)
			for k := range w.U8 {
				w.U8[k] = uint8(r.IntN(2)<<7 | r.IntN(0x7f))
			}
			w.BlockRows, w.BlockCols, w.ScaleCols = 128, 128, (in+127)/128
			w.Scale = dense(r, (out+127)/128, w.ScaleCols).Data
		case kernels.I8:
			w.I8 = make([]int8, out*in)
			for k := range w.I8 {
				w.I8[k] = int8(r.IntN(255) - 127)
			}
			w.Scale = dense(r, 1, out).Data
		}
		all[i] = w
	}
	return all
}

// BenchmarkMatMul has matrices of DeepSeek-V2-Lite: an expert's, an attention layer's and a dense layer's. The figures are bytes of
// weights per second, also as a share of what a plain loop reads in the same run, and multiplications.
func BenchmarkMatMul(b *testing.B) {
	for _, s := range [][2]int{{1408, 2048}, {2048, 2048}, {2048, 10944}} {
		for _, f := range benchFormats {
			for _, rows := range []int{1, 2, 4, 8, 16, 64, 512} {
				out, in, r := s[0], s[1], benchRand()
				b.Run(fmt.Sprintf("%dx%d/%s/%d", out, in, f.name, rows), func(b *testing.B) {
					w := benchWeights(r, f.format, f.bytes, out, in, rows)
					x, to := dense(r, rows, in), dense(r, rows, out)
					q := kernels.Rows8{Data: make([]int8, rows*in), Scale: make([]float32, rows), Rows: rows, Cols: in, Stride: in}
					eachTable(b, func(b *testing.B, k kernels.Table) {
						product(b, rows*out*in, out*in*f.bytes, func(i int) {
							if f.format == kernels.I8 {
								k.Quantize(q, x)
								k.MatMul8(to, q, &w[i%len(w)])
							} else {
								k.MatMul(to, x, &w[i%len(w)])
							}
						})
					})
				})
			}
		}
	}
}

// BenchmarkSwiGLU is an expert of DeepSeek-V2-Lite.
func BenchmarkSwiGLU(b *testing.B) {
	const out, in = 1408, 2048
	for _, f := range benchFormats {
		for _, rows := range []int{1, 2, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", f.name, rows), func(b *testing.B) {
				r := benchRand()
				w := benchWeights(r, f.format, f.bytes, 2*out, in, rows)
				x, to := dense(r, rows, in), dense(r, rows, out)
				q := kernels.Rows8{Data: make([]int8, rows*in), Scale: make([]float32, rows), Rows: rows, Cols: in, Stride: in}
				eachTable(b, func(b *testing.B, k kernels.Table) {
					product(b, 2*rows*out*in, 2*out*in*f.bytes, func(i int) {
						gate, up := w[i%len(w)].Sub(0, out), w[i%len(w)].Sub(out, 2*out)
						if f.format == kernels.I8 {
							k.Quantize(q, x)
							k.SwiGLU8(to, q, &gate, &up)
						} else {
							k.SwiGLU(to, x, &gate, &up)
						}
					})
				})
			})
		}
	}
}

// BenchmarkHeadMatMul is what the absorbed form does with kv_b_proj of DeepSeek-V2-Lite before and after attention.
func BenchmarkHeadMatMul(b *testing.B) {
	const heads, latent, half = 16, 512, 128
	for _, h := range []kernels.HeadMatMul{
		{Heads: heads, Rows: 2 * half, To: half, Transposed: true, InStride: half, OutStride: latent},
		{Heads: heads, Rows: 2 * half, From: half, To: 2 * half, InStride: latent, OutStride: half},
	} {
		for _, rows := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("transposed=%t/%d", h.Transposed, rows), func(b *testing.B) {
				r := benchRand()
				w := benchWeights(r, kernels.BF16, 2, heads*h.Rows, latent, rows)
				x, to := dense(r, rows, heads*h.InStride), dense(r, rows, heads*h.OutStride)
				eachTable(b, func(b *testing.B, k kernels.Table) {
					product(b, rows*heads*half*latent, 2*heads*half*latent, func(i int) { k.HeadMatMul(to, x, &w[i%len(w)], h) })
				})
			})
		}
	}
}

// product runs f, which does so many multiplications with so many bytes of weights.
func product(b *testing.B, multiplications, bytes int, f func(i int)) {
	b.Helper()
	memory := make([]uint64, cold/8)
	for i := range memory {
		memory[i] = 1
	}
	read := readRate(b, memory)
	b.SetBytes(int64(bytes))
	i := 0
	for b.Loop() {
		f(i)
		i++
	}
	each := b.Elapsed().Seconds() / float64(b.N)
	read = max(read, readRate(b, memory))
	b.ReportMetric(float64(bytes)/each/read, "of-read")
	b.ReportMetric(float64(multiplications)/each/1e9, "Gmul/s")
}

// readRate is how many bytes per second a plain loop reads that sums up words.
func readRate(b *testing.B, p []uint64) float64 {
	b.Helper()
	var s0, s1, s2, s3 uint64
	start := time.Now()
	for q := p; len(q) >= 4; q = q[4:] {
		s0, s1, s2, s3 = s0+q[0], s1+q[1], s2+q[2], s3+q[3]
	}
	took := time.Since(start).Seconds()
	if got := s0 + s1 + s2 + s3; got != uint64(len(p)) {
		b.Fatalf("read %d words of %d", got, len(p))
	}
	return float64(8*len(p)) / took
}
