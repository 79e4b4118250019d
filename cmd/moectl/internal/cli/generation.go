package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/internal/config"
)

// closeTimeout bounds the orderly end of a node; graceTime does after an interrupt. A step that takes longer is left to the end
// of the process.
const closeTimeout = 30 * time.Second

// generation is one run of the generate command after its words were understood.
type generation struct {
	*app
	log      *slog.Logger
	settings *config.Loaded
	model    *modelFiles
	source   source
	output   string

	stats   statsFile
	failed  bool // a request ended with an error
	refused bool // a line of standard input was refused
}

// do checks the prompts against the model, runs them, and writes the stats file whatever happened in between.
func (g *generation) do(ctx context.Context) (err error) {
	if g.settings.GenerationConfig == config.Auto {
		if err := takeGeneration(g.settings, g.model.config.Generation); err != nil {
			return err
		}
	}
	options, opened, err := g.options()
	if err != nil {
		return err
	}
	limits := g.limitsBefore(options)
	if err := g.checkPrompts(limits); err != nil {
		return err
	}
	if g.stats, err = openStats(g.settings.StatsFile); err != nil {
		return err
	}

	late, stop := grace(ctx)
	defer stop()
	n, err := node.Start(ctx, options)
	if err != nil {
		if interrupted(ctx) {
			err = errInterrupted
		}
		return errors.Join(err, g.stats.write(actors.Stats{}))
	}
	defer func() { err = g.end(ctx, late, n, err) }()
	g.logKernels(opened(), n.Stats().Ranks)
	if length := n.Limits().MaxModelLen; length != limits.MaxModelLen { // memory has cut it; nothing else can have changed
		limits.MaxModelLen = length
		if err := g.checkPrompts(limits); err != nil {
			return err
		}
	}
	return g.answer(ctx, late, n)
}

// closer is what end needs of a node.
type closer interface {
	Close(ctx context.Context) error
	Stats() actors.Stats
}

// end closes the node, writes the counters, and returns what the run ends with instead of err. After an interrupt that is the
// interrupt, whatever else went wrong.
func (g *generation) end(ctx, late context.Context, n closer, err error) error {
	closing, cancel := context.WithTimeout(late, closeTimeout)
	defer cancel()
	closeErr := n.Close(closing)
	statsErr := g.stats.write(n.Stats())
	if interrupted(ctx) {
		if closeErr != nil {
			g.log.Warn("what still runs is left to the end of the process", "error", closeErr)
		}
		if errors.Is(err, errInterrupted) {
			return errors.Join(err, statsErr)
		}
		return errors.Join(errInterrupted, err, statsErr)
	}
	if end := errors.Join(closeErr, statsErr); end != nil {
		g.complain(end)
		return errors.Join(err, reportedError{exitFailure})
	}
	return err
}

// options returns the node's options, and where to look for the description of the device that it opened.
func (g *generation) options() (node.Options, func() hal.Description, error) {
	backend, err := g.backend(g.settings.Device)
	if err != nil {
		return node.Options{}, nil, err
	}
	var mu sync.Mutex // guards description: Open is called on the rank's thread
	var description hal.Description
	o := node.Defaults()
	o.Open = func(index int) (hal.Device, error) {
		device, err := backend.Open(index)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			description = device.Describe()
		}
		return device, err
	}
	o.Config, o.Checkpoint = g.model.config, g.model.checkpoint
	o.Tokenizer, o.TokenizerErr = g.model.tokenizer, g.model.tokenizerErr
	o.MaxModelLen, o.KVBlocks = g.settings.MaxModelLen, g.settings.NumGPUBlocksOverride
	o.MaxNumBatchedTokens, o.MaxNumSeqs, o.BlockSize = g.settings.MaxNumBatchedTokens, g.settings.MaxNumSeqs, g.settings.BlockSize
	o.StartTimeout, o.Logger = g.settings.StartTimeout, g.log
	if err := o.Validate(); err != nil {
		return o, nil, usageError{err}
	}
	return o, func() hal.Description {
		mu.Lock()
		defer mu.Unlock()
		return description
	}, nil
}

// limitsBefore are the limits that are known before the model is loaded: those that node.Limits gives of the same options, if
// memory does not cut the model length. Engines is that of a node, which has one.
func (g *generation) limitsBefore(o node.Options) gateway.Limits {
	length := o.MaxModelLen
	if length == 0 {
		length = o.Config.MaxPositionEmbeddings
	}
	return gateway.Limits{VocabSize: o.Config.VocabSize, MaxModelLen: length, Engines: 1, Tokenizer: o.Tokenizer, TokenizerErr: o.TokenizerErr}
}

// checkPrompts returns the faults of all prompts of a list. It keeps the ids of those without, so that no text is tokenized
// twice, neither by a second check nor when it is submitted.
func (g *generation) checkPrompts(limits gateway.Limits) error {
	var faults []error
	for i := range g.source.list {
		e := &g.source.list[i]
		ids, err := gateway.Check(e.request(i, g.settings.Settings), limits)
		if err != nil {
			faults = append(faults, e.fault(err))
			continue
		}
		e.ids = ids
	}
	if len(faults) > 0 {
		return usageError{errors.Join(faults...)}
	}
	return nil
}

// logKernels says once what computes.
func (g *generation) logKernels(d hal.Description, ranks []actors.RankStats) {
	threads := 0
	for _, r := range ranks {
		threads += r.Threads
	}
	g.log.Info("kernels", "device", d.Name, "cores", d.Cores, "threads", threads, "ops", kernelSummary(d.Kernels))
}

// kernelSummary counts the ops of each implementation, as in "avx512: 9 ops, go: 2 ops".
func kernelSummary(kernels []hal.Kernel) string {
	count := map[string]int{}
	var impls []string
	for _, k := range kernels {
		if count[k.Impl]++; count[k.Impl] == 1 {
			impls = append(impls, k.Impl)
		}
	}
	slices.Sort(impls)
	var text string
	for i, impl := range impls {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s: %d ops", impl, count[impl])
	}
	return text
}
