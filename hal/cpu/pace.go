package cpu

import "time"

// work is a kind of kernel: each has a pace of its own.
type work int

const (
	linear  work = iota // MatMul, SwiGLU
	linear8             // the same with int8 weights
	heads               // HeadMatMul
	attention
	simple // the others
	kinds
)

// partTime is how long a part of an operation should take: short against any time in which a rank must show progress, long against what a
// part costs more.
const partTime = 5 * time.Millisecond

// A part has at least leastPart multiplications, about a millisecond of plain Go, also on a host that is too busy for it to take
// partTime, and at most mostPart.
const (
	leastPart = 1 << 20
	mostPart  = 1 << 30
)

// pace says how much work makes a part. It follows what the kernels of this host take under its present load.
type pace struct {
	least, most int            // multiplications of a part; with both equal nothing is measured
	cost        [kinds]float64 // nanoseconds of a multiplication, lately
}

// newPace begins with the smallest parts: what a multiplication takes here and now is not known.
func newPace() pace {
	p := pace{least: leastPart, most: mostPart}
	for k := range p.cost {
		p.cost[k] = float64(partTime) / leastPart
	}
	return p
}

// part returns how many multiplications make a part.
func (p *pace) part(k work) int {
	n := float64(partTime) / p.cost[k]
	return int(min(max(n, float64(p.least)), float64(p.most)))
}

// units returns how many units, of so many multiplications each, make a part, at least 1.
func (p *pace) units(k work, each int) int { return max(1, p.part(k)/max(1, each)) }

// start returns the time if a part of n multiplications is worth measuring, else zero: what is shorter says little and the clock costs.
func (p *pace) start(n int) (t time.Time) {
	if p.least < p.most && n >= p.least/2 {
		t = time.Now()
	}
	return t
}

// took notes that n multiplications have run since start. One part counts a quarter, and not as more than four times what was
// expected: it may have been interrupted.
func (p *pace) took(k work, n int, start time.Time) {
	if start.IsZero() {
		return
	}
	if d := time.Since(start); d > 0 { // a clock that is coarse or stands says nothing
		p.cost[k] += (min(float64(d)/float64(n), 4*p.cost[k]) - p.cost[k]) / 4
	}
}
