package simd_test

import (
	"fmt"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// vocabulary is that of DeepSeek-V2-Lite.
const vocabulary = 102400

// BenchmarkEmbed looks up rows of a table in BF16. Bytes are those of the rows read.
func BenchmarkEmbed(b *testing.B) {
	const hidden = 2048
	for _, rows := range []int{1, 16, 512} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			r := benchRand()
			table := kernels.Weight{Format: kernels.BF16, Out: vocabulary, In: hidden, Stride: hidden, U16: make([]uint16, vocabulary*hidden)}
			ids, out := make([]int32, rows), dense(r, rows, hidden)
			for i := range ids {
				ids[i] = r.Int32N(vocabulary)
			}
			eachTable(b, func(b *testing.B, k kernels.Table) {
				b.SetBytes(int64(2 * rows * hidden))
				for b.Loop() {
					k.Embed(out, &table, ids, 0)
				}
			})
		})
	}
}

// BenchmarkQuantize turns activations into int8. Bytes are those of the activations.
func BenchmarkQuantize(b *testing.B) {
	const hidden = 2048
	for _, rows := range []int{1, 16, 512} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			x := dense(benchRand(), rows, hidden)
			q := kernels.Rows8{Data: make([]int8, rows*hidden), Scale: make([]float32, rows), Rows: rows, Cols: hidden, Stride: hidden}
			eachTable(b, func(b *testing.B, k kernels.Table) {
				b.SetBytes(int64(4 * rows * hidden))
				for b.Loop() {
					k.Quantize(q, x)
				}
			})
		})
	}
}

// BenchmarkAttendKeys is a head of DeepSeek-V2-Lite over a prompt, at its end. Bytes are those of the keys and values, once.
func BenchmarkAttendKeys(b *testing.B) {
	const width, value, positions = 192, 128, 512
	for _, rows := range []int{1, 32, 512} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			r := benchRand()
			q, keys, values, out := dense(r, rows, width), dense(r, positions, width), dense(r, positions, value), dense(r, rows, value)
			at, state, multiplications := make([]int32, rows), make([]float32, 2*rows), 0
			for i := range at {
				at[i] = int32(positions - rows + i)
				multiplications += (int(at[i]) + 1) * (width + value)
			}
			eachTable(b, func(b *testing.B, k kernels.Table) {
				b.SetBytes(4 * positions * (width + value))
				for b.Loop() {
					k.AttendKeys(out, q, keys, values, at, 0, 0.07, state)
				}
				b.ReportMetric(float64(multiplications)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gmul/s")
			})
		})
	}
}

// BenchmarkBlockMax and BenchmarkBlockSumExp pass over the logits of a row.
func BenchmarkBlockMax(b *testing.B) {
	benchBlocks(b, func(k kernels.Table, out, x []float32) { k.BlockMax(out, x) })
}

func BenchmarkBlockSumExp(b *testing.B) {
	benchBlocks(b, func(k kernels.Table, out, x []float32) { k.BlockSumExp(out, x, 5, 1) })
}

func benchBlocks(b *testing.B, f func(k kernels.Table, out, x []float32)) {
	b.Helper()
	x, out := dense(benchRand(), 1, vocabulary).Row(0), make([]float32, kernels.Blocks(vocabulary))
	eachTable(b, func(b *testing.B, k kernels.Table) {
		b.SetBytes(4 * vocabulary)
		for b.Loop() {
			f(k, out, x)
		}
	})
}
