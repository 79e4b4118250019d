// Package exchange is the boundary between attention and experts: A2E brings rows and their routing to the ranks that hold
// the experts, E2A brings one unsummed, unweighted row for each (row, slot) home, where hal's Combine adds them in the
// router's order, so that the bits do not depend on who holds which expert. Local needs no communication, AllGather serves
// experts spread over a group. It does not choose experts, compute them or weigh their results: that is the architecture's.
package exchange

import (
	"context"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// Sizes are what an exchange's buffers are made for. Letters: R rows that a rank brings, P ranks, K experts per row, E
// experts of a rank, H hidden, M rows that reach a rank's experts.
type Sizes struct {
	Rows     int // most rows that a rank brings to a step, R
	Hidden   int // H
	Experts  int // of all ranks, P·E
	PerToken int // K
	Ranks    int // over which the experts are spread, P
	Rank     int // which of them this is: its experts are Rank·E … Rank·E+E−1
}

// Local returns how many experts a rank holds.
func (s Sizes) Local() int { return s.Experts / s.Ranks }

// at says which rank holds an expert.
func (s Sizes) at(expert int32) int {
	return topology.ExpertMap{Experts: s.Experts, Ranks: s.Ranks}.Rank(int(expert))
}

// Arriving returns the most rows that can reach a rank's experts when every rank brings rows: a row goes to K different experts, of
// which at most min(K, E) are one rank's.
func (s Sizes) Arriving(rows int) int { return rows * s.Ranks * min(s.PerToken, s.Local()) }

// Exchange has the two directions, with a Visit between them. Their work goes onto the stream in this order, with the
// experts' in between; the tensors returned belong to the exchange and are valid until the next A2E. An error is the
// stream's, and leaves it usable. It belongs to the goroutine that owns the device.
type Exchange interface {
	// A2E sends each row to its experts; an expert of −1 is none. All ranks bring the same number of rows. // x (R, H), ids (R, K) I32
	A2E(ctx context.Context, st hal.Stream, x, ids hal.Tensor) (Visit, error)
	// E2A brings the experts' results home, which have taken the place of the rows in v.
	E2A(ctx context.Context, st hal.Stream, v Visit) (Home, error)
}

// Visit is what a rank's experts get.
type Visit struct {
	Rows   hal.Tensor // (M, H) sorted by expert; behind the counted ones there may be more, which mean nothing
	Counts hal.Tensor // (1, E) I32 rows of each expert
	Sent   int64      // bytes of rows that this rank sent to others
	rows   int        // R
	index  hal.Tensor // (R, K) I32 of Rows, if it is the rank's own
}

// Home is what comes back to the rank that brought the rows.
type Home struct {
	Rows  hal.Tensor // (M, H)
	Index hal.Tensor // (R, K) I32 which of Rows is the result of a (row, slot), −1: none
	Sent  int64      // bytes of rows that this rank sent to others
}

// rowBytes is the size of n rows.
func rowBytes(n, hidden int) int64 { return int64(n) * int64(hidden) * int64(hal.F32.Size()) }

// buffers are those that both exchanges need.
type buffers struct {
	sizes  Sizes
	rows   hal.Tensor // (M, H) at the experts
	index  hal.Tensor // (P·R, K) I32 of rows
	counts hal.Tensor // (1, E) I32
}

func newBuffers(a *nn.Allocator, s Sizes) buffers {
	return buffers{
		sizes:  s,
		rows:   a.F32(s.Arriving(s.Rows), s.Hidden),
		index:  a.I32(s.Ranks*s.Rows, s.PerToken),
		counts: a.I32(1, s.Local()),
	}
}
