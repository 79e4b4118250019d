package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/token"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/topology"
)

// Options describe a node. Start from Defaults.
type Options struct {
	Name string // of the node, one of its own in the cluster
	Host string // the host's identity, the same on all nodes of one host: they share its devices
	// Cluster is the prefix of the bus subjects, the same on all nodes of a cluster. Empty, for a node that is alone: one that
	// nobody else has.
	Cluster string
	// Bus carries the control plane. The caller closes it after Close.
	Bus bus.Bus
	// Coordinate makes this the node whose coordinator decides every step; exactly one node of a cluster has it.
	Coordinate bool

	Layout              topology.Layout
	FirstEngine         int      // of the engines that live here
	Engines             int      // how many of them; 0: all from FirstEngine on
	Devices             int      // of the host; the coordinator assigns ranks to them
	All2AllBackend      string   // topology.Auto, or the exchange to use
	DType               nn.DType // number format of the weights; of all nodes the same
	ExpandPrompts       bool     // rows of prompts attend in the expanded form; of all nodes the same
	MaxModelLen         int      // most tokens of prompt and answer; 0: max_position_embeddings; cut to what the KV blocks hold
	MaxNumSeqs          int      // most requests of an engine running at once, ≥ 1
	BlockSize           int      // positions in a KV block, ≥ 1
	KVBlocks            int      // of an engine; 0: what a quarter of free memory holds, at most MaxNumSeqs requests of full length
	MaxNumBatchedTokens int      // most rows of an engine's step, ≥ 1

	// Open opens a device by its local index; the rank's own thread calls it.
	Open   func(index int) (hal.Device, error)
	Config *config.Config
	// Checkpoint is read in place as long as the node lives: the caller closes it after Close returned nil, and not at all
	// if Start or Close gave up waiting.
	Checkpoint   *weights.Checkpoint
	Tokenizer    *token.Tokenizer // nil: prompts are token ids and answers have no text
	TokenizerErr error            // why there is no tokenizer, for refusals

	Logger       *slog.Logger  // nil: silence
	StartTimeout time.Duration // Start gives up when nothing gets on for so long
	StallTimeout time.Duration // a rank that makes no progress in a step for so long ends the epoch
	BusTimeout   time.Duration // steps wait for a bus that is away for so long, then the node fails

	// load stands in for Open and Checkpoint; not exported, for tests.
	load func(rank int) (open func(context.Context) (rank.Opened, error), progress func() int64)
}

// Defaults returns the options that are used when nobody says otherwise; Bus, Open, Config and Checkpoint have none.
func Defaults() Options {
	return Options{
		Name: "local", Host: "local", Coordinate: true, Layout: topology.Layout{DataParallel: 1, TensorParallel: 1}, Devices: 64,
		All2AllBackend: topology.Auto, DType: nn.Auto, MaxNumBatchedTokens: 2048, MaxNumSeqs: 64, BlockSize: 16,
		StartTimeout: 300 * time.Second, StallTimeout: 10 * time.Second, BusTimeout: 300 * time.Second,
	}
}

// engines returns the engines that live on this node.
func (o Options) engines() gateway.Span {
	if o.Engines == 0 {
		return gateway.Span{From: o.FirstEngine, To: o.Layout.DataParallel}
	}
	return gateway.Span{From: o.FirstEngine, To: o.FirstEngine + o.Engines}
}

// alone says whether the whole layout is on this node.
func (o Options) alone() bool {
	return o.Coordinate && o.engines() == gateway.Span{From: 0, To: o.Layout.DataParallel}
}

// ranks returns the global ranks that live on this node, [from, to).
func (o Options) ranks() (from, to int) {
	e := o.engines()
	return e.From * o.Layout.TensorParallel, e.To * o.Layout.TensorParallel
}

// dims are the sizes of the model that the layout cuts.
func (o Options) dims() topology.Dims {
	c := o.Config
	d := topology.Dims{Heads: c.NumHeads, Vocab: c.VocabSize}
	if c.FirstKDenseReplace > 0 {
		d.DenseWidth = c.IntermediateSize
	}
	if c.FirstKDenseReplace < c.NumLayers {
		d.Experts, d.ExpertWidth, d.SharedWidth = c.NumRoutedExperts, c.MoEIntermediateSize, c.NumSharedExperts*c.MoEIntermediateSize
	}
	return d
}
