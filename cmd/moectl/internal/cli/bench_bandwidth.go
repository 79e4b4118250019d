package cli

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	readBuffer = 512 << 20 // bytes; far more than caches hold
	readPasses = 5         // over the buffer, each time it is measured
)

// readLoop measures how fast memory is read: threads that touch every cache line of a part of a buffer each, and
// do nothing else.
type readLoop struct {
	parts [][]uint64
	sum   atomic.Uint64 // keeps the compiler from leaving it out
}

func newReadLoop(threads int) *readLoop {
	buffer := make([]uint64, readBuffer/8)
	for i := range buffer { // memory that was never written is not there
		buffer[i] = uint64(i)
	}
	l := &readLoop{}
	for i := range threads {
		l.parts = append(l.parts, buffer[i*len(buffer)/threads:(i+1)*len(buffer)/threads])
	}
	return l
}

// speeds adds what some passes reach, in bytes per second.
func (l *readLoop) speeds(speeds []float64) []float64 {
	for range readPasses {
		start := time.Now()
		var pass sync.WaitGroup
		for _, part := range l.parts {
			pass.Go(func() { l.sum.Add(sumLines(part)) })
		}
		pass.Wait()
		speeds = append(speeds, readBuffer/time.Since(start).Seconds())
	}
	return speeds
}

// lineWords is a cache line, in words: reading one of them brings all.
const lineWords = 8

// sumLines sums up the first word of each line. It reads eight places at once, which keeps more reads under way than one does; a
// rest of less than eight lines is left out.
func sumLines(words []uint64) uint64 {
	n := len(words) / (8 * lineWords) * lineWords // words from one place to the next
	var sum, more uint64
	for i := 0; i < n; i += lineWords {
		sum += words[i] + words[i+n] + words[i+2*n] + words[i+3*n]
		more += words[i+4*n] + words[i+5*n] + words[i+6*n] + words[i+7*n]
	}
	return sum + more
}
