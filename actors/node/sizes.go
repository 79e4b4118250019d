package node

import (
	"fmt"
	"math"

	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/topology"
)

// sizes are the KV cache and the model length that fit each other.
type sizes struct {
	blocks   int
	modelLen int // tokens
	wanted   int // the model length asked for; above modelLen if it had to be cut
}

// fit chooses them for one rank, whose share of free memory is given: the wanted model length is the option or what the model
// has positions for; without a number of blocks, a quarter of the share is theirs, but no more than MaxNumSeqs sequences of that
// length can use; then the length is cut to what the blocks hold.
func (o Options) fit(share, bytesPerBlock int64) (sizes, error) {
	s := sizes{blocks: o.KVBlocks, wanted: o.MaxModelLen}
	if s.wanted == 0 {
		s.wanted = o.Config.MaxPositionEmbeddings
	}
	if s.blocks == 0 {
		most := int64(o.seats()) * int64(kv.BlocksFor(s.wanted, o.BlockSize))
		s.blocks = int(min(share/4/bytesPerBlock, most, int64(math.MaxInt32/o.BlockSize))) // positions are numbered with 32 bits
	}
	s.modelLen = min(s.wanted, s.blocks*o.BlockSize)
	if s.modelLen < 2 {
		return s, fmt.Errorf("KV cache: one block of block-size=%d positions takes %d bytes, and a quarter of the free device memory is %d for each rank: "+
			"lower block-size, free memory, or set num-gpu-blocks-override", o.BlockSize, bytesPerBlock, share/4)
	}
	return s, nil
}

// conversionBytes is the memory that the weights of the node's ranks take together beside the files.
func (o Options) conversionBytes() int64 {
	form, err := o.DType.Form(o.Config)
	if err != nil || o.Checkpoint == nil {
		return 0
	}
	var places []topology.Place
	from, to := o.ranks()
	for r := from; r < to; r++ {
		places = append(places, o.Layout.Place(r))
	}
	return deepseek.ConversionBytes(o.Config, o.Checkpoint, places, form)
}

// seats is how many requests can run at once: each has at least one row of a step.
func (o Options) seats() int { return min(o.MaxNumSeqs, o.MaxNumBatchedTokens) }

// rows is how many rows a step can have when all engines' are padded.
func (o Options) rows() int {
	return topology.PadTo([]int{o.MaxNumBatchedTokens}, o.Layout.TensorParallel)
}
