package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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

// engines is how many a node has.
const engines = 1

// generation is one run of the generate command after its words were understood.
type generation struct {
	*app
	log      *slog.Logger
	settings *config.Loaded
	backend  Backend // that computes
	model    *modelFiles
	source   source
	output   string

	promptsFile string // that source comes from, "" if it does not

	stats   statsFile
	failed  bool // a request ended with an error
	refused bool // a line of standard input was refused
}

// do checks the prompts against the model, runs them, and once the node has started writes the stats file whatever happened
// then. What was found wrong before is returned with what the checks find, and nothing is run.
func (g *generation) do(ctx context.Context, before error) (err error) {
	faults := []error{before}
	if g.settings.GenerationConfig == config.Auto {
		faults = append(faults, takeGeneration(g.settings, g.model.config.Generation))
	}
	options, opened := g.options()
	limits := g.limitsBefore(options)
	defaults, err := g.checkDefaults(limits)
	faults = append(faults, options.Validate(), err, g.checkPrompts(defaults, limits), g.checkStats())
	if err := errors.Join(faults...); err != nil {
		return usageError{err}
	}
	if g.stats, err = openStats(g.settings.StatsFile); err != nil {
		return err
	}

	g.watch.orderly.Store(true)
	late, stop := grace(ctx)
	defer stop()
	n, err := node.Start(ctx, options)
	if err != nil {
		if interrupted(ctx) {
			err = errInterrupted
		}
		return errors.Join(err, g.stats.drop())
	}
	defer func() { err = g.end(ctx, late, n, err) }()
	g.logKernels(opened(), n.Stats().Ranks)
	if length := n.Limits().MaxModelLen; length != limits.MaxModelLen { // memory has cut it; nothing else can have changed
		limits.MaxModelLen = length
		if err := g.checkPrompts(defaults, limits); err != nil {
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

// options returns the node's options, not validated, and where to look for the description of the device that it opened.
func (g *generation) options() (node.Options, func() hal.Description) {
	var mu sync.Mutex // guards description: Open is called on the rank's thread
	var description hal.Description
	o := node.Defaults()
	o.Open = func(index int) (hal.Device, error) {
		device, err := g.backend.Open(index)
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
	return o, func() hal.Description {
		mu.Lock()
		defer mu.Unlock()
		return description
	}
}

// limitsBefore are the limits that are known before the model is loaded: those that node.Limits gives of the same options, if
// memory does not cut the model length; of options that a node refuses, what it would take in their place. Length and vocabulary apart they hold for all models.
func (g *generation) limitsBefore(o node.Options) gateway.Limits {
	length := o.Config.MaxPositionEmbeddings
	if o.MaxModelLen > 0 {
		length = min(length, o.MaxModelLen)
	}
	if o.KVBlocks > 0 && o.KVBlocks <= (length-1)/o.BlockSize {
		length = o.KVBlocks * o.BlockSize
	}
	return gateway.Limits{VocabSize: o.Config.VocabSize, MaxModelLen: length, Engines: engines, Tokenizer: o.Tokenizer, TokenizerErr: o.TokenizerErr}
}

// checkDefaults returns the faults of what prompts take from the settings, and the settings without them, so that no prompt
// repeats them.
func (g *generation) checkDefaults(limits gateway.Limits) (config.Settings, error) {
	s := g.settings.Settings
	var faults []error
	for _, f := range samplingFaults(s, limits.VocabSize) {
		if f = g.settings.Fault(f.Key, f.Problem); f.Source == "" { // defaults are right, so the model says it
			f.Source = "generation_config.json: " + f.Key
		}
		faults = append(faults, f)
	}
	usual := config.Defaults()
	if len(faults) > 0 {
		s.Temperature, s.TopP, s.TopK, s.Logprobs = usual.Temperature, usual.TopP, usual.TopK, usual.Logprobs
	}
	limits.MaxModelLen = math.MaxInt
	if _, err := gateway.Check((prompt{ids: []int32{0}}).request(0, s), limits); err != nil {
		faults = append(faults, err)
		s.Stop = usual.Stop
	}
	return s, errors.Join(faults...)
}

// checkPrompts returns the faults of all prompts of a list, with s for what they do not say. It keeps the ids of those without,
// so that no text is tokenized twice, neither by a second check nor when it is submitted.
func (g *generation) checkPrompts(s config.Settings, limits gateway.Limits) error {
	var faults []error
	for i := range g.source.list {
		e := &g.source.list[i]
		if e.err != nil {
			continue // named already
		}
		ids, err := gateway.Check(e.request(i, s), limits)
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
