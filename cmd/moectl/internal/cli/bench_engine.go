package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/topology"
)

// engineBench is one run of bench engine after its words were understood.
type engineBench struct {
	*generation
	flags benchFlags
	node  *nodeOnBus
}

// warmGen bounds the tokens of a sequence in a run that warms up.
const warmGen = 8

// lateRows is how many steps a sequence may run on before it is known that all have enough.
const lateRows = 8

// do starts a node for the measurements, runs them and closes it.
func (b *engineBench) do(ctx context.Context, measure func(context.Context) error) (err error) {
	options, opened, err := b.nodeOptions()
	if err != nil {
		return usageError{err}
	}
	b.watch.orderly.Store(true)
	late, stop := grace(ctx)
	defer stop()
	if b.node, err = b.start(ctx, options); err != nil {
		if interrupted(ctx) {
			err = errInterrupted
		}
		return err
	}
	defer func() { err = b.end(ctx, late, b.node, err) }()
	b.logKernels(opened(), b.node.Stats().Ranks)
	if err := b.checkRoom(options); err != nil {
		return err
	}
	return measure(ctx)
}

// most is the largest number of sequences.
func (b *engineBench) most() int { return slices.Max(b.flags.batches) }

// tokens bounds what a sequence of a batch generates: its first token, those of the steps in which the others' prompts are read,
// the measured ones, and some until it is cancelled.
func (b *engineBench) tokens(batch, rows int) int {
	steps := (batch*b.flags.prompt + rows - batch - 1) / (rows - batch)
	return 1 + steps + b.flags.gen + lateRows
}

// nodeOptions are those of a node of one rank with room for the largest batch, or all that is wrong with them.
func (b *engineBench) nodeOptions() (node.Options, func() map[int]hal.Description, error) {
	o, opened := b.options()
	o.Layout, o.All2AllBackend, o.Devices = topology.Layout{DataParallel: 1, TensorParallel: 1}, topology.Auto, node.Defaults().Devices
	o.MaxModelLen, o.KVBlocks, o.MaxNumSeqs = 0, 0, b.most()
	faults := []error{o.Validate()}
	positions, rows := o.Config.MaxPositionEmbeddings, o.MaxNumBatchedTokens
	switch {
	case b.flags.prompt > positions || b.flags.gen > positions: // neither sum nor product is safe
		faults = append(faults, fmt.Errorf("--prompt-len %d, --gen-len %d: the model has %d positions (max_position_embeddings)", b.flags.prompt, b.flags.gen, positions))
	case b.most() >= rows:
		faults = append(faults, fmt.Errorf("--batch %d: a step has max-num-batched-tokens=%d rows, of which one at least must be left for prompts", b.most(), rows))
	default:
		tokens := b.tokens(b.most(), rows)
		if o.MaxModelLen = b.flags.prompt + tokens; o.MaxModelLen > positions {
			faults = append(faults, fmt.Errorf("--prompt-len %d, --gen-len %d, --batch %d: a sequence takes up to %d positions, with those generated while the others' prompts are read; "+
				"the model has %d (max_position_embeddings)", b.flags.prompt, b.flags.gen, b.most(), o.MaxModelLen, positions))
		}
	}
	return o, opened, errors.Join(faults...)
}

// checkRoom refuses a node whose KV cache makes sequences wait for each other.
func (b *engineBench) checkRoom(o node.Options) error {
	blocks := b.node.Stats().Engines[0].KVBlocks
	if want := b.most() * kv.BlocksFor(o.MaxModelLen, o.BlockSize); blocks < want {
		return fmt.Errorf("KV cache: %d sequences of up to %d positions take %d blocks, and a quarter of free memory holds %d: lower --batch, --prompt-len or --gen-len, or free memory",
			b.most(), o.MaxModelLen, want, blocks)
	}
	return nil
}

// measure runs all batches, with the read bandwidth before and after each.
func (b *engineBench) measure(ctx context.Context) (benchReport, error) {
	memory := newReadLoop(b.node.Stats().Ranks[0].Threads)
	step, err := b.stepBytes()
	if err != nil {
		return benchReport{}, err
	}
	report := benchReport{Results: []benchResult{}}
	speeds := memory.speeds(nil)
	var read []float64 // bytes per token
	for _, batch := range b.flags.batches {
		var prefills, decodes []float64
		served := map[int]int64{} // rows by expert, while decoding
		for i := range b.flags.repeat + 1 {
			gen := b.flags.gen
			if i == 0 {
				gen = min(gen, warmGen)
			}
			run, err := b.run(ctx, batch, gen, uint64(i))
			switch {
			case interrupted(ctx):
				return report, errInterrupted
			case err != nil:
				return report, err
			case i == 0:
				continue
			}
			prefills = append(prefills, float64(batch*b.flags.prompt)/run.prefill.Seconds())
			decodes = append(decodes, float64(batch*gen)/run.decode.Seconds())
			for expert, rows := range run.served {
				served[expert] += rows
			}
			b.log.Info("measured", "batch", batch, "run", i, "prefill_tokens_per_s", math.Round(prefills[i-1]), "decode_tokens_per_s", math.Round(decodes[i-1]))
		}
		speeds = memory.speeds(speeds)
		read = append(read, step.perToken(batch, b.flags.prompt+b.flags.gen/2, served))
		report.Results = append(report.Results, benchResult{Batch: batch, Prefill: median(prefills), Decode: median(decodes)})
	}
	report.ReadBandwidth = median(speeds)
	for i := range report.Results {
		r := &report.Results[i]
		r.BytesPerToken = read[i]
		r.BandwidthShare = read[i] * r.Decode / report.ReadBandwidth
	}
	return report, nil
}

// engineRun is one run of a batch.
type engineRun struct {
	prefill, decode time.Duration
	served          map[int]int64 // rows of each expert while decoding, about
}

// sighting is something that came on the stream of a sequence.
type sighting struct {
	sequence int
	tokens   int
	at       time.Time
	err      error
	ended    bool
}

// run sends prompts of a batch that no run had before, and watches them until each has gen tokens after all have their first.
func (b *engineBench) run(ctx context.Context, batch, gen int, number uint64) (engineRun, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	random := rand.New(rand.NewPCG(uint64(batch), number))
	requests := make([]actors.Request, batch)
	for i := range requests {
		requests[i] = b.request(batch, random)
	}
	seen := make(chan sighting, batch)
	began := time.Now()
	running := 0
	var failed error
	for i, request := range requests {
		stream, err := b.node.Submit(ctx, request)
		if err != nil {
			failed = err
			cancel()
			break
		}
		running++
		go follow(ctx, i, stream, seen)
	}
	var r engineRun
	var before map[int]int64
	w := newDecodeWindow(batch, gen)
	for running > 0 {
		s := <-seen
		if s.ended {
			running--
		}
		if failed != nil || w.over() {
			continue // until they have ended
		}
		w.take(s)
		switch {
		case s.err != nil:
			failed = fmt.Errorf("sequence %d of %d: %w", s.sequence, batch, s.err)
			cancel()
		case w.over():
			r = engineRun{prefill: w.first.Sub(began), decode: w.last.Sub(w.first), served: b.expertRows(before)}
			cancel()
		case s.ended && ctx.Err() == nil:
			failed = fmt.Errorf("sequence %d of %d: it ended before all had %d tokens after their first", s.sequence, batch, gen)
			cancel()
		case w.open() && before == nil:
			before = b.expertRows(nil)
		}
	}
	if failed == nil && !w.over() {
		failed = context.Cause(ctx)
	}
	return r, failed
}

// request is a prompt of random tokens that goes on until it is cancelled.
func (b *engineBench) request(batch int, random *rand.Rand) actors.Request {
	ids := make([]int32, b.flags.prompt)
	for i := range ids {
		ids[i] = random.Int32N(int32(b.model.config.VocabSize))
	}
	return actors.Request{
		IDs: ids, MaxTokens: b.tokens(batch, b.settings.MaxNumBatchedTokens), IgnoreEOS: true,
		Sampling: sample.Params{TopP: 1, Logprobs: sample.NoLogprobs},
	}
}

// follow reports what comes on a stream until its end, which the end of ctx brings about.
func follow(ctx context.Context, sequence int, stream *gateway.Stream, seen chan<- sighting) {
	stop := context.AfterFunc(ctx, stream.Cancel)
	defer stop()
	for s := (sighting{sequence: sequence}); !s.ended; {
		chunk, err := stream.Recv(context.WithoutCancel(ctx)) // every request is answered, also when the node fails
		s.tokens, s.at = len(chunk.Tokens), time.Now()
		s.err, s.ended = errors.Join(err, chunk.Err), err != nil || chunk.Finish != ""
		seen <- s
	}
}

// expertRows returns the rows that each expert has served since before was taken.
func (b *engineBench) expertRows(before map[int]int64) map[int]int64 {
	rows := map[int]int64{}
	for _, l := range b.node.ExpertLoad() {
		rows[l.Expert] += l.Rows - before[l.Expert]
	}
	return rows
}
