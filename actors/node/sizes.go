package node

import (
	"fmt"
	"math"

	"github.com/moerack/moerack/model/kv"
)

// sizes are the KV cache and the model length that fit each other.
type sizes struct {
	blocks   int
	modelLen int // tokens
	wanted   int // the model length asked for; above modelLen if it had to be cut
}

// fit chooses them: the wanted model length is the option or what the model has positions for; without a number of blocks, a
// quarter of free memory is theirs, but no more than MaxNumSeqs sequences of that length can use; then the length is cut to
// what the blocks hold.
func (o Options) fit(free, bytesPerBlock int64) (sizes, error) {
	s := sizes{blocks: o.KVBlocks, wanted: o.MaxModelLen}
	if s.wanted == 0 {
		s.wanted = o.Config.MaxPositionEmbeddings
	}
	if s.blocks == 0 {
		most := int64(o.seats()) * int64(kv.BlocksFor(s.wanted, o.BlockSize))
		s.blocks = int(min(free/4/bytesPerBlock, most, int64(math.MaxInt32/o.BlockSize))) // positions are numbered with 32 bits
	}
	s.modelLen = min(s.wanted, s.blocks*o.BlockSize)
	if s.modelLen < 2 {
		return s, fmt.Errorf("KV cache: one block of block-size=%d positions takes %d bytes, and a quarter of the free device memory is %d: "+
			"lower block-size, free memory, or set num-gpu-blocks-override", o.BlockSize, bytesPerBlock, free/4)
	}
	return s, nil
}

// seats is how many requests can run at once: each has at least one row of a step.
func (o Options) seats() int { return min(o.MaxNumSeqs, o.MaxNumBatchedTokens) }
