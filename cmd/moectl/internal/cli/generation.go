package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/internal/config"
	"github.com/moerack/moerack/messages/bus/natsbus"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

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

	stats    statsFile
	failures failures // of requests
	failed   bool     // a request ended with an error
	refused  bool     // a line of standard input was refused
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
	faults = append(faults, options.Validate(), g.checkBus(), g.backend.checkKernels(compute(g.settings.Settings, 1)), err, g.checkPrompts(defaults, limits), g.checkStats())
	if err := errors.Join(faults...); err != nil {
		return usageError{err}
	}
	if g.stats, err = openStats(g.settings.StatsFile); err != nil {
		return err
	}

	g.watch.orderly.Store(true)
	late, stop := grace(ctx)
	defer stop()
	n, err := g.start(ctx, options)
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
	return g.answer(ctx, late, n.Node)
}

// checkBus returns the faults of what --nats says, whether or not a server is there.
func (g *generation) checkBus() error {
	if err := (natsbus.Options{URL: g.settings.NATS}).Validate(); err != nil {
		return fmt.Errorf("--nats: %w", err) // without the setting itself, which may hold a password
	}
	return nil
}

// start connects the bus and starts the node on it.
func (g *generation) start(ctx context.Context, options node.Options) (*nodeOnBus, error) {
	bus, err := natsbus.Start(ctx, natsbus.Options{URL: g.settings.NATS, Logger: g.log, Ping: natsbus.PingFor(g.settings.StallTimeout)})
	if err != nil {
		return nil, err
	}
	options.Bus = bus
	n, err := node.Start(ctx, options)
	if err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
		defer cancel()
		return nil, errors.Join(err, bus.Close(closing))
	}
	return &nodeOnBus{n, bus}, nil
}

// options returns the node's options, not validated, and where to look for the descriptions of the devices that it opened, by index.
func (g *generation) options() (node.Options, func() map[int]hal.Description) {
	var mu sync.Mutex // guards opened: Open is called on the ranks' threads
	opened := map[int]hal.Description{}
	o := node.Defaults()
	may := compute(g.settings.Settings, g.settings.DataParallelSize*g.settings.TensorParallelSize)
	o.Open = func(index int) (hal.Device, error) {
		device, err := g.backend.Open(index, may)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			opened[index] = device.Describe()
		}
		return device, err
	}
	o.Config, o.Checkpoint = g.model.config, g.model.checkpoint
	o.Tokenizer, o.TokenizerErr = g.model.tokenizer, g.model.tokenizerErr
	o.MaxModelLen, o.KVBlocks = g.settings.MaxModelLen, g.settings.NumGPUBlocksOverride
	o.MaxNumBatchedTokens, o.MaxNumSeqs, o.BlockSize = g.settings.MaxNumBatchedTokens, g.settings.MaxNumSeqs, g.settings.BlockSize
	o.StartTimeout, o.StallTimeout, o.BusTimeout, o.Logger = g.settings.StartTimeout, g.settings.StallTimeout, g.settings.BusTimeout, g.log
	o.Layout = topology.Layout{
		DataParallel: g.settings.DataParallelSize, TensorParallel: g.settings.TensorParallelSize, ExpertParallel: g.settings.EnableExpertParallel,
	}
	o.All2AllBackend, o.Devices = g.settings.All2AllBackend, g.settings.CPUDevices
	o.DType, o.ExpandPrompts = nn.DType(g.settings.DType), g.settings.MLAPrefill == config.Expanded
	return o, func() map[int]hal.Description {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(opened)
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
	return gateway.Limits{VocabSize: o.Config.VocabSize, MaxModelLen: length, Engines: o.Layout.DataParallel, Tokenizer: o.Tokenizer, TokenizerErr: o.TokenizerErr}
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

// logKernels says once what computes. The devices of a backend differ in their numbers only, so the first speaks for all.
func (g *generation) logKernels(devices map[int]hal.Description, ranks []actors.RankStats) {
	threads := 0
	for _, r := range ranks {
		threads += r.Threads
	}
	var names []string
	var first hal.Description
	for _, index := range slices.Sorted(maps.Keys(devices)) {
		if names = append(names, devices[index].Name); len(names) == 1 {
			first = devices[index]
		}
	}
	g.log.Info("kernels", "devices", strings.Join(names, " "), "cores", first.Cores, "threads", threads, "ops", strings.Join(kernelLines(first.Kernels), "; "))
}
