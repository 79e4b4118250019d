package cpu

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// benchmarkComm runs an operation on all ranks; bytes are of one rank's operand.
func benchmarkComm(b *testing.B, op string) {
	for _, size := range []int{2, 4} {
		for _, kib := range []int{4, 64, 1024} {
			b.Run(fmt.Sprintf("ranks=%d/KiB=%d", size, kib), func(b *testing.B) {
				const cols = 512
				rows := kib << 10 / 4 / cols
				if op == "AllToAllV" {
					rows = max(rows/size, 1) // of each peer
				}
				run(b, op, size, rows, cols)
				b.SetBytes(int64(kib) << 10)
			})
		}
	}
}

// run measures ranks on threads of their own, as they are in a node.
func run(b *testing.B, op string, size, rows, cols int) {
	b.Helper()
	ranks := joined(b, size)
	var others sync.WaitGroup
	n := b.N
	for _, r := range ranks[1:] {
		work := r.ops(b, rows, cols)[op]
		others.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for range n {
				work()
			}
		})
	}
	own := ranks[0].ops(b, rows, cols)[op]
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	b.ResetTimer()
	for range n {
		own()
	}
	others.Wait()
	if err := ranks[0].st.Err(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAllReduce(b *testing.B) { benchmarkComm(b, "AllReduce") }

func BenchmarkAllToAll(b *testing.B) { benchmarkComm(b, "AllToAllV") }

func BenchmarkBarrier(b *testing.B) {
	for _, size := range []int{2, 4} {
		b.Run(fmt.Sprintf("ranks=%d", size), func(b *testing.B) { run(b, "Barrier", size, 1, 1) })
	}
}
