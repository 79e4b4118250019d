package cli

import (
	"testing"

	"github.com/moerack/moerack/actors/node"
	modelconfig "github.com/moerack/moerack/model/config"
)

// The model length is known before the load as far as options say it; faulty options have a length all the same.
func TestLimitsBefore(t *testing.T) {
	for _, c := range []struct{ positions, length, blocks, block, want int }{
		{1024, 0, 0, 16, 1024},
		{1024, 64, 0, 16, 64},
		{1024, 5000, 0, 16, 1024},
		{1024, 0, 2, 16, 32},
		{1024, 20, 2, 16, 20},
		{1024, 32, 2, 16, 32},
		{1024, 33, 2, 16, 32},
		{1024, 0, 64, 16, 1024},
		{1024, 0, 1 << 62, 16, 1024},
		{10, 0, 1, 16, 10},
	} {
		o := node.Options{Config: &modelconfig.Config{VocabSize: 9, MaxPositionEmbeddings: c.positions}, MaxModelLen: c.length, KVBlocks: c.blocks, BlockSize: c.block}
		if got := (&generation{}).limitsBefore(o); got.MaxModelLen != c.want || got.VocabSize != 9 {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}
