package node

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/topology"
)

func TestValidate(t *testing.T) {
	good := Defaults()
	good.Open = func(int) (hal.Device, error) { return nil, nil }
	good.Bus = newBus(t, membus.New(membus.Options{}))
	good.Config, good.Checkpoint = &config.Config{MaxPositionEmbeddings: 100, NumLayers: 2, NumHeads: 5, NumRoutedExperts: 16}, &weights.Checkpoint{}
	if err := good.Validate(); err != nil {
		t.Errorf("defaults with a model: %v", err)
	}
	for _, tt := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Config = nil }, "Config is missing"},
		{func(o *Options) { o.Open = nil }, "Open is missing"},
		{func(o *Options) { o.Checkpoint = nil }, "Checkpoint is missing"},
		{func(o *Options) { o.Name = "" }, "node-name is empty"},
		{func(o *Options) { o.MaxModelLen = 101 }, "max-model-len=101: must be 1 … 100"},
		{func(o *Options) { o.MaxModelLen = -1 }, "max-model-len=-1"},
		{func(o *Options) { o.MaxNumBatchedTokens = 0 }, "max-num-batched-tokens=0: must be 1 … 2147483647"},
		{func(o *Options) { o.MaxNumBatchedTokens = 1 << 62 }, "max-num-batched-tokens=4611686018427387904"},
		{func(o *Options) { o.MaxModelLen = 1 }, "max-model-len=1: must be ≥ 2"},
		{func(o *Options) { o.KVBlocks, o.BlockSize = 1, 1 }, "num-gpu-blocks-override=1: must be ≥ 2 with block-size=1"},
		{func(o *Options) { o.MaxNumSeqs = math.MaxInt }, "max-num-seqs=9223372036854775807"},
		{func(o *Options) { o.MaxNumSeqs = 0 }, "max-num-seqs=0: must be 1 … 2147483647"},
		{func(o *Options) { o.BlockSize = 0 }, "block-size=0"},
		{func(o *Options) { o.KVBlocks = -1 }, "num-gpu-blocks-override=-1"},
		{func(o *Options) { o.KVBlocks = 1 << 30 }, "num-gpu-blocks-override=1073741824: must be at most 134217727 with block-size=16"},
		{func(o *Options) { o.StartTimeout = 0 * time.Second }, "start-timeout=0s: must be above 0"},
		{func(o *Options) { o.StallTimeout = 0 }, "stall-timeout=0s: must be above 0"},
		{func(o *Options) { o.Host = "" }, "Host is empty"},
		{func(o *Options) { o.Layout.TensorParallel = 0 }, "tensor-parallel-size=0"},
		{func(o *Options) { o.Layout.TensorParallel = 2 }, "tensor-parallel-size=2 must divide the 5 attention heads"},
		{func(o *Options) { o.Layout = topology.Layout{DataParallel: 3, TensorParallel: 1, ExpertParallel: true} }, "must divide the 16 experts"},
		{func(o *Options) { o.All2AllBackend = "mc3" }, `all2all-backend="mc3"`},
		{func(o *Options) { o.All2AllBackend = "allgather" }, "all2all-backend=allgather: every rank holds all experts"},
		{func(o *Options) { o.Devices = 0 }, "cpu-devices=0"},
		{func(o *Options) { o.Cluster, o.FirstEngine = "c", 1 }, "FirstEngine=1, Engines=0: must name engines of 0 … 0"},
		{func(o *Options) { o.Cluster, o.Engines = "c", 2 }, "FirstEngine=0, Engines=2: must name engines of 0 … 0"},
		{func(o *Options) { o.Layout.DataParallel, o.Engines = 2, 1 }, "Cluster is empty"},
		{func(o *Options) { o.Coordinate = false }, "Cluster is empty"},
	} {
		o := good
		tt.change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("fault %v, want one that says %q", err, tt.want)
		}
	}
	if n := strings.Count((Options{}).Validate().Error(), "\n") + 1; n != 14 {
		t.Errorf("no options at all: %d faults, want 14 at once:\n%v", n, Options{}.Validate())
	}
}

func TestStartNeedsABus(t *testing.T) {
	if _, err := Start(t.Context(), Options{}); err == nil || strings.Count(err.Error(), "\n") != 14 || !strings.HasPrefix(err.Error(), "Bus is missing") {
		t.Errorf("no options at all: want the missing bus and 14 faults more, got %v", err)
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		name             string
		maxLen, blocks   int
		seqs             int
		free             int64
		wantBlocks, want int
	}{
		{"as many as all sequences can use", 0, 0, 2, 1 << 30, 2 * 25, 100},
		{"a quarter of free memory", 0, 0, 64, 4 * 30 * 1000, 30, 100},
		{"the length is cut to it", 0, 0, 64, 4 * 10 * 1000, 10, 40},
		{"a shorter length needs less", 50, 0, 2, 1 << 30, 26, 50},
		{"blocks as told", 0, 7, 64, 0, 7, 28},
	} {
		o := Options{Config: &config.Config{MaxPositionEmbeddings: 100}, MaxModelLen: tt.maxLen, KVBlocks: tt.blocks, MaxNumSeqs: tt.seqs, MaxNumBatchedTokens: 2048, BlockSize: 4}
		if s, err := o.fit(tt.free, 1000); err != nil || s.blocks != tt.wantBlocks || s.modelLen != tt.want {
			t.Errorf("%s: %+v, %v; want %d blocks, length %d", tt.name, s, err, tt.wantBlocks, tt.want)
		}
	}
	o := Options{Config: &config.Config{MaxPositionEmbeddings: 100}, MaxNumSeqs: 4, MaxNumBatchedTokens: 2048, BlockSize: 4}
	if _, err := o.fit(3999, 1000); err == nil || !strings.Contains(err.Error(), "KV cache: one block of block-size=4 positions takes 1000 bytes, and a quarter of the free device memory is 999 for each rank") {
		t.Errorf("no room: %v", err)
	}
}
