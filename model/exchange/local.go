package exchange

import (
	"context"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

// Local is the exchange of a rank that holds all experts, whole or its share of their width: rows are sorted by expert and stay.
type Local struct {
	buffers
}

// NewLocal makes the buffers. s.Ranks is 1.
func NewLocal(a *nn.Allocator, s Sizes) *Local { return &Local{newBuffers(a, s)} }

// A2E sorts the rows by expert.
func (l *Local) A2E(_ context.Context, st hal.Stream, x, ids hal.Tensor) (Visit, error) {
	v := Visit{
		Rows:   l.rows.Slice(0, l.sizes.Arriving(x.Rows)),
		Counts: l.counts,
		rows:   x.Rows,
		index:  l.index.Slice(0, x.Rows),
	}
	st.Dispatch(v.Rows, v.index, v.Counts, x, ids, 0)
	return v, nil
}

// E2A has nothing to move.
func (l *Local) E2A(_ context.Context, _ hal.Stream, v Visit) (Home, error) {
	return Home{Rows: v.Rows, Index: v.index}, nil
}
