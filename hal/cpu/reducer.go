package cpu

import (
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
)

var (
	_ hal.Reducer = (*device)(nil)
	_             = [1]struct{}{}[hal.ReduceBlock-kernels.ReduceBlock]
)

// BlockMax implements hal.Reducer.
func (d *device) BlockMax(out, x []float32) { d.table.BlockMax(out, x) }

// BlockSumExp implements hal.Reducer.
func (d *device) BlockSumExp(out, x []float32, most, scale float32) {
	d.table.BlockSumExp(out, x, most, scale)
}
