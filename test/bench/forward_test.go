//go:build unix

package bench_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/test/rig"
)

// BenchmarkDecode runs one sequence one token at a time, around a context length.
func BenchmarkDecode(b *testing.B) {
	for _, name := range rig.Models[:3] {
		for _, context := range []int{64, 400} {
			b.Run(fmt.Sprintf("%s/context=%d", name, context), func(b *testing.B) {
				r := rig.Load(b, name, 16)
				s := r.Sequence(context + 1)
				batch := &nn.Batch{}
				r.Feed(batch, s, tokens(context), false)
				r.Run(batch)
				batch = &nn.Batch{}
				r.Feed(batch, s, tokens(1), false)
				b.ReportAllocs()
				start := cpuSeconds(b)
				for b.Loop() {
					if _, err := r.Model.Forward(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
				b.ReportMetric(float64(b.N)/(cpuSeconds(b)-start), "tokens/cpu-s")
			})
		}
	}
}

// BenchmarkPrefill runs a prompt of 256 tokens in one step.
func BenchmarkPrefill(b *testing.B) {
	for _, name := range rig.Models[:3] {
		b.Run(name, func(b *testing.B) {
			r := rig.Load(b, name, 16)
			const n = 256
			batch := &nn.Batch{}
			r.Feed(batch, r.Sequence(n), tokens(n), false)
			start := cpuSeconds(b)
			for b.Loop() {
				if _, err := r.Model.Forward(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
			b.ReportMetric(n*float64(b.N)/(cpuSeconds(b)-start), "tokens/cpu-s")
		})
	}
}

// tokens returns a fixed sequence of ids that every vocabulary has.
func tokens(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32((i*37 + 5) % 320)
	}
	return v
}

// cpuSeconds is the process's own time on a core: on a shared machine it says more than the clock.
func cpuSeconds(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
