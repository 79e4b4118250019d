package nn

import "sync/atomic"

// Load counts the rows that each expert of a rank has served. The rank's thread adds; anyone may read.
type Load struct {
	First int // global number of the rank's first expert
	rows  []atomic.Int64
}

// NewLoad makes the counters of experts first … first+n−1.
func NewLoad(first, n int) *Load { return &Load{First: first, rows: make([]atomic.Int64, n)} }

// Add counts rows of the rank's e-th expert, from 0.
func (l *Load) Add(e int, rows int64) { l.rows[e].Add(rows) }

// Rows returns the counts. // (experts of the rank)
func (l *Load) Rows() []int64 {
	out := make([]int64, len(l.rows))
	for i := range l.rows {
		out[i] = l.rows[i].Load()
	}
	return out
}
