package node

import (
	"errors"
	"fmt"
	"math"

	"github.com/moerack/moerack/topology"
)

// faults collects what is wrong with options.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

func (f *faults) join(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

// Validate returns all faults of o, joined, each with the legal values. Whether there is a bus, Start looks for: it is connected once
// the rest is right.
func (o Options) Validate() error {
	var f faults
	o.checkParts(&f)
	o.checkSizes(&f)
	o.checkLayout(&f)
	if o.Config != nil {
		_, err := o.DType.Form(o.Config)
		f.join(err)
	}
	if o.StartTimeout <= 0 {
		f.add("start-timeout=%s: must be above 0", o.StartTimeout)
	}
	if o.StallTimeout <= 0 {
		f.add("stall-timeout=%s: must be above 0", o.StallTimeout)
	}
	if o.BusTimeout <= 0 {
		f.add("bus-timeout=%s: must be above 0", o.BusTimeout)
	}
	return errors.Join(f...)
}

// checkParts looks for what the caller has to hand in.
func (o Options) checkParts(f *faults) {
	if o.Config == nil {
		f.add("Config is missing: load it with config.Load")
	}
	if o.load == nil && o.Open == nil {
		f.add("Open is missing: give a function that opens a device")
	}
	if o.load == nil && o.Checkpoint == nil {
		f.add("Checkpoint is missing: open it with weights.Open")
	}
	if o.Name == "" {
		f.add("node-name is empty: must have at least one character")
	}
	if o.Host == "" {
		f.add("Host is empty: must be the same on all nodes of one host, and on no other")
	}
}

// checkSizes looks at what an engine is to hold.
func (o Options) checkSizes(f *faults) {
	if c := o.Config; c != nil && (o.MaxModelLen < 0 || o.MaxModelLen > c.MaxPositionEmbeddings) {
		f.add("max-model-len=%d: must be 1 … %d (max_position_embeddings of the model), or 0 for that", o.MaxModelLen, c.MaxPositionEmbeddings)
	}
	if o.MaxModelLen == 1 {
		f.add("max-model-len=1: must be ≥ 2, for a prompt and an answer of one token each")
	}
	if o.MaxNumBatchedTokens < 1 || o.MaxNumBatchedTokens > math.MaxInt32 {
		f.add("max-num-batched-tokens=%d: must be 1 … %d", o.MaxNumBatchedTokens, math.MaxInt32)
	}
	if o.MaxNumSeqs < 1 || o.MaxNumSeqs > math.MaxInt32 {
		f.add("max-num-seqs=%d: must be 1 … %d", o.MaxNumSeqs, math.MaxInt32)
	}
	if o.BlockSize < 1 || o.BlockSize > math.MaxInt32 {
		f.add("block-size=%d: must be 1 … %d", o.BlockSize, math.MaxInt32)
	}
	if o.KVBlocks < 0 {
		f.add("num-gpu-blocks-override=%d: must be ≥ 1, or 0 to take a quarter of free memory", o.KVBlocks)
	}
	if o.BlockSize > 0 && o.KVBlocks > math.MaxInt32/o.BlockSize {
		f.add("num-gpu-blocks-override=%d: must be at most %d with block-size=%d (positions are numbered with 32 bits)", o.KVBlocks, math.MaxInt32/o.BlockSize, o.BlockSize)
	}
	if o.KVBlocks == 1 && o.BlockSize == 1 {
		f.add("num-gpu-blocks-override=1: must be ≥ 2 with block-size=1, for a prompt and an answer of one token each")
	}
}

// checkLayout looks at the layout, and at the part of it that lives here.
func (o Options) checkLayout(f *faults) {
	var d topology.Dims
	if o.Config != nil {
		d = o.dims()
	}
	sound := o.Layout.DataParallel > 0 && o.Layout.TensorParallel > 0
	f.join(o.Layout.Validate(d))
	if sound {
		_, err := topology.ResolveExchange(o.All2AllBackend, o.Layout.EP())
		f.join(err)
	}
	if o.Devices < 1 {
		f.add("cpu-devices=%d: must be ≥ 1", o.Devices)
	}
	if e := o.engines(); sound && (e.From < 0 || e.From >= e.To || e.To > o.Layout.DataParallel) {
		f.add("FirstEngine=%d, Engines=%d: must name engines of 0 … %d (data-parallel-size=%d)", o.FirstEngine, o.Engines, o.Layout.DataParallel-1, o.Layout.DataParallel)
	}
	if sound && o.alone() && o.Devices > 0 && o.Layout.DataParallel <= topology.MaxRanks/o.Layout.TensorParallel {
		e := o.engines() // of a node that shares the layout the coordinator finds out, with the others
		_, _, err := topology.AssignDevices(o.Layout, []topology.NodeDevices{{Node: o.Name, Host: o.Host, Devices: o.Devices, FirstEngine: e.From, Engines: e.To - e.From}})
		f.join(err)
	}
	if sound && o.Cluster == "" && !o.alone() {
		f.add("Cluster is empty: nodes that share a layout must have the same")
	}
}
