package rank

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/sample"
)

// attempts is how often a step is tried whose error is transient. Repeating is safe: KV slots are fixed and sampling is last.
const attempts = 3

// executor turns a plan and a batch into the model's batch and its logits into tokens. It belongs to the device goroutine.
type executor struct {
	opts    Options
	model   Model
	layers  int
	batch   nn.Batch // reused from step to step
	sampler sample.Sampler
	lost    error // why the device must not be used any more
}

func newExecutor(o Options, opened Opened) *executor {
	return &executor{opts: o, model: opened.Model, layers: opened.Facts.Layers}
}

// execute runs a step. A panic leaves the device in an unknown state, so it counts as lost.
func (e *executor) execute(ctx context.Context, s *actors.Step) (done *actors.StepDone) {
	done = &actors.StepDone{Epoch: s.Plan.Epoch, Step: s.Plan.Step, Incarnation: s.Incarnation}
	if e.lost != nil {
		done.Err, done.Lost = e.lost, true
		return done
	}
	defer func() {
		if p := recover(); p != nil {
			e.opts.Logger.Error("panic on the device thread", "rank", e.opts.Rank, "step", s.Plan.Step, "panic", p, "stack", string(debug.Stack()))
			done.Sampled, done.Err, done.Lost = nil, panicError(p), true
		}
		if done.Lost {
			e.lost = done.Err
		}
	}()
	lower(&e.batch, s.Batch, s.Plan.PadTo, e.opts.BlockSize)
	out, err := e.forward(ctx, s.Plan.Step)
	if err != nil {
		done.Err, done.Lost = err, hal.ClassOf(err) == hal.DeviceLost
		return done
	}
	done.Sampled, done.Err = e.sample(s.Batch, out)
	return done
}

// panicError turns what the device thread panicked with into an error. A memory fault has an address.
func panicError(p any) error {
	if fault, ok := p.(interface{ Addr() uintptr }); ok {
		return fmt.Errorf("memory fault at %#x on the device thread: was a weight file changed while it was mapped?", fault.Addr())
	}
	return fmt.Errorf("panic on the device thread: %v", p)
}

func (e *executor) forward(ctx context.Context, step uint64) (out nn.Output, err error) {
	for i := 1; ; i++ {
		out, err = e.model.Forward(ctx, &e.batch)
		if hal.ClassOf(err) != hal.Transient || i == attempts {
			return out, err
		}
		e.opts.Logger.Warn("step failed, repeating it", "rank", e.opts.Rank, "step", step, "attempt", i, "error", err)
	}
}

// sample chooses a token for every run of rows that asks for one, in their order.
func (e *executor) sample(b *actors.Batch, out nn.Output) ([]actors.Sampled, error) {
	n := len(e.batch.Samples)
	if n == 0 {
		return nil, nil
	}
	if len(out.BadLayer) != n || len(out.Logits)%n != 0 || len(out.Logits) == 0 {
		return nil, fmt.Errorf("model returned %d logits and %d checks for %d rows", len(out.Logits), len(out.BadLayer), n)
	}
	vocab := len(out.Logits) / n
	sampled := make([]actors.Sampled, 0, n)
	for _, r := range b.Rows {
		if !r.Sample {
			continue
		}
		i, next := len(sampled), r.Position+len(r.Tokens)
		s := actors.Sampled{Request: r.Request}
		if bad := out.BadLayer[i]; bad >= 0 {
			s.Err = notFinite(int(bad), e.layers, next-1)
		} else {
			s.Token, s.Logprobs = e.sampler.Sample(out.Logits[i*vocab:(i+1)*vocab], r.Sampling, next)
		}
		sampled = append(sampled, s)
	}
	return sampled, nil
}

// notFinite is what a client reads when the numbers blew up.
func notFinite(layer, layers, position int) error {
	where := fmt.Sprintf("output of layer %d", layer)
	if layer >= layers {
		where = "output of the final norm or the head"
	}
	return fmt.Errorf("%s is not finite (NaN or Inf) at position %d: check the checkpoint with \"moectl doctor --model DIR\"", where, position)
}

// lower writes a step's batch into dst as the model wants it: rows with their KV slots, one block table row for each run of
// rows, padding up to padTo rows. dst keeps its memory.
func lower(dst *nn.Batch, b *actors.Batch, padTo, blockSize int) {
	dst.Reset()
	for _, r := range b.Rows {
		dst.Width = max(dst.Width, len(r.Blocks))
	}
	for seq, r := range b.Rows {
		for i, token := range r.Tokens {
			dst.Tokens = append(dst.Tokens, token)
			dst.Positions = append(dst.Positions, int32(r.Position+i))
			dst.Slots = append(dst.Slots, kv.Slot(r.Blocks, r.Position+i, blockSize))
			dst.Seqs = append(dst.Seqs, int32(seq))
		}
		dst.Tables = append(dst.Tables, r.Blocks...)
		for range dst.Width - len(r.Blocks) {
			dst.Tables = append(dst.Tables, 0)
		}
		if r.Sample {
			dst.Samples = append(dst.Samples, int32(len(dst.Tokens)-1))
		}
	}
	dst.Pad(padTo)
}
