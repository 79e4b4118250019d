//go:build unix

package bench_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/kernels/simd"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/test/rig"
	"github.com/moerack/moerack/topology"
)

// tables are the kernels that benchmarks compare: the best of this machine, and plain Go.
var tables = []struct {
	name string
	off  []string
}{{"fast", nil}, {"go", simd.Names()}}

// BenchmarkDecode runs sequences one token at a time, around a context length.
func BenchmarkDecode(b *testing.B) {
	for _, name := range rig.Models[:3] {
		for _, size := range []struct{ sequences, context int }{{1, 64}, {1, 400}, {8, 64}} {
			for _, table := range tables {
				b.Run(fmt.Sprintf("%s/sequences=%d/context=%d/%s", name, size.sequences, size.context, table.name), func(b *testing.B) {
					r := rig.LoadOn(b, cpu.Options{Off: table.off}, rig.Dir(name), topology.Place{TP: 1, EP: 1}, 16, weights.Stored)
					batch := &nn.Batch{}
					for range size.sequences {
						s, prompt := r.Sequence(size.context+1), &nn.Batch{}
						r.Feed(prompt, s, tokens(size.context), false)
						r.Run(prompt)
						r.Feed(batch, s, tokens(1), false)
					}
					b.ReportAllocs()
					measure(b, r, batch, size.sequences)
				})
			}
		}
	}
}

// BenchmarkPrefill runs a prompt in one step.
func BenchmarkPrefill(b *testing.B) {
	for _, name := range rig.Models[:3] {
		for _, n := range []int{4, 16, 256} {
			for _, table := range tables {
				b.Run(fmt.Sprintf("%s/tokens=%d/%s", name, n, table.name), func(b *testing.B) {
					r := rig.LoadOn(b, cpu.Options{Off: table.off}, rig.Dir(name), topology.Place{TP: 1, EP: 1}, 16, weights.Stored)
					batch := &nn.Batch{}
					r.Feed(batch, r.Sequence(n), tokens(n), false)
					measure(b, r, batch, n)
				})
			}
		}
	}
}

// measure runs a step of so many tokens.
func measure(b *testing.B, r *rig.Rig, batch *nn.Batch, n int) {
	b.Helper()
	start := cpuSeconds(b)
	for b.Loop() {
		if _, err := r.Step(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(n)*float64(b.N)/(cpuSeconds(b)-start), "tokens/cpu-s")
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
