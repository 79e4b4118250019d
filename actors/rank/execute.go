package rank

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/sample"
)

// attempts is how often a rank that meets no other tries a step whose error is transient. Repeating is safe: KV slots are fixed
// and sampling is last. Ranks that meet cannot repeat: the others have gone on.
const attempts = 3

// executor turns a plan and a batch into the model's batch and its logits into tokens. It belongs to the device goroutine.
type executor struct {
	opts    Options
	model   Model
	facts   actors.RankFacts
	meets   bool // other ranks take part in its steps
	batch   nn.Batch
	masked  []bool                     // runs of the batch that are padding
	tokens  []int32                    // chosen in the step, one for each sample
	chosen  map[actors.RequestID]int32 // by the last step
	last    uint64                     // number of the last step
	sharing bool                       // in Share, which may have ended the step's Progress when it panics
	sampler sample.Sampler
	broken  error // why no step of the epoch can be run any more: the others are elsewhere
	lost    error // why the device must not be used any more
}

func newExecutor(o Options, opened Opened) *executor {
	return &executor{opts: o, model: opened.Model, facts: opened.Facts, chosen: map[actors.RequestID]int32{}, sampler: sample.Sampler{Reducer: opened.Reducer}}
}

// epoch begins a new epoch, in which other ranks take part or not.
func (e *executor) epoch(meets bool) {
	e.meets, e.broken, e.last = meets, nil, 0
	clear(e.chosen)
}

// execute runs a step. A panic leaves the device in an unknown state, so it counts as lost.
func (e *executor) execute(ctx context.Context, s *actors.Step) (done *actors.StepDone) {
	done = &actors.StepDone{Rank: e.opts.Rank, Epoch: s.Plan.Epoch, Step: s.Plan.Step, Incarnation: s.Incarnation}
	switch {
	case e.lost != nil:
		done.Err, done.Lost = e.lost, true
		return done
	case e.broken != nil:
		done.Err = &hal.Error{Op: "step", Device: e.facts.Device, Class: hal.Aborted, Detail: fmt.Sprintf("step %d is not run after a failed one", s.Plan.Step), Err: e.broken}
		return done
	}
	defer func() {
		if p := recover(); p != nil {
			e.opts.Logger.Error("panic on the device thread", "rank", e.opts.Rank, "step", s.Plan.Step, "panic", p, "stack", string(debug.Stack()))
			done.Sampled, done.Err, done.Lost = nil, e.failure(s.Plan.Step, panicError(p)), true
		}
		e.settle(s, done)
	}()
	if s.Plan.Step != e.last+1 {
		clear(e.chosen) // of a step that this one does not continue
	}
	if err := e.run(ctx, s, done); err != nil {
		f := e.failure(s.Plan.Step, err)
		if ctx.Err() != nil && hal.ClassOf(err) == 0 {
			f.Err = &hal.Error{Op: "step", Device: e.facts.Device, Class: hal.Aborted, Detail: "the rank was told to end", Err: f.Err}
		}
		done.Err, done.Lost = f, hal.ClassOf(err) == hal.DeviceLost
	}
	return done
}

// settle remembers what the next step needs: the tokens chosen in this one, or that there are none.
func (e *executor) settle(s *actors.Step, done *actors.StepDone) {
	if e.facts.Progress != nil {
		e.facts.Progress.End()
	}
	e.last = s.Plan.Step
	clear(e.chosen)
	if done.Err != nil {
		done.Sampled = nil
		if done.Lost {
			e.lost = done.Err
		}
		if e.meets {
			e.broken = done.Err
		}
		return
	}
	n := 0
	for i, r := range s.Batch.Rows {
		if !r.Sample || e.masked[i] {
			continue
		}
		if token := e.tokens[n]; token != actors.Placeholder {
			e.chosen[r.Request] = token
		}
		n++
	}
}

func (e *executor) run(ctx context.Context, s *actors.Step, done *actors.StepDone) (err error) {
	if e.masked, err = lower(&e.batch, s.Batch, s.Plan.PadTo, e.opts.BlockSize, e.chosen, e.masked); err != nil {
		return err
	}
	out, err := e.forward(ctx, nn.Step{Number: s.Plan.Step, Exchange: s.Plan.Exchange, Stages: s.Plan.Stages})
	if err != nil {
		return err
	}
	done.Sent, done.Expanded = out.Sent, out.Expanded
	e.tokens = append(e.tokens[:0], make([]int32, len(e.batch.Samples))...)
	if e.opts.TPRank == 0 {
		if done.Sampled, err = e.sample(s.Batch, out); err != nil {
			return err
		}
	}
	e.sharing = true
	err = e.model.Share(ctx, e.tokens)
	e.sharing = false
	return err
}

func (e *executor) forward(ctx context.Context, step nn.Step) (out nn.Output, err error) {
	for i := 1; ; i++ {
		out, err = e.model.Forward(ctx, &e.batch, step)
		if e.meets || hal.ClassOf(err) != hal.Transient || i == attempts {
			return out, err
		}
		e.opts.Logger.Warn("step failed, repeating it", "rank", e.opts.Rank, "step", step.Number, "attempt", i, "error", err)
	}
}

// sample chooses a token for every run of rows that asks for one, in their order, and notes it for the engine's other ranks.
func (e *executor) sample(b *actors.Batch, out nn.Output) ([]actors.Sampled, error) {
	n := len(e.batch.Samples)
	if n > 0 && (len(out.BadLayer) != n || len(out.Logits)%n != 0 || len(out.Logits) == 0) {
		return nil, fmt.Errorf("model returned %d logits and %d checks for %d rows", len(out.Logits), len(out.BadLayer), n)
	}
	sampled := make([]actors.Sampled, 0, len(b.Rows))
	i := 0
	for run, r := range b.Rows {
		if !r.Sample {
			continue
		}
		s := actors.Sampled{Request: r.Request, Masked: e.masked[run]}
		if !s.Masked {
			vocab, next := len(out.Logits)/n, r.Position+len(r.Tokens)
			if bad := out.BadLayer[i]; bad >= 0 {
				s.Err = notFinite(int(bad), e.facts.Layers, next-1)
				e.tokens[i] = actors.Placeholder
			} else {
				s.Token, s.Logprobs = e.sampler.Sample(out.Logits[i*vocab:(i+1)*vocab], r.Sampling, next)
				e.tokens[i] = s.Token
			}
			i++
		}
		sampled = append(sampled, s)
	}
	return sampled, nil
}

// failure says where a step failed: where the model says, or where the rank was last seen.
func (e *executor) failure(step uint64, err error) *actors.Failure {
	f := &actors.Failure{Rank: e.opts.Rank, Node: e.opts.Node, Step: step, Layer: -1, Err: err}
	var at *nn.OpError
	if errors.As(err, &at) {
		f.Op, f.Layer = string(at.Op.Name), at.Op.Layer
		if cause := errors.Unwrap(at); cause != nil {
			f.Err = cause // the op is named already
		}
		return f
	}
	if e.facts.Progress != nil {
		if p := e.facts.Progress.Read(); p.Running && p.Step == step {
			f.Op, f.Layer = string(p.Op.Name), p.Op.Layer
			return f
		}
	}
	if e.sharing {
		f.Op = string(nn.OpTokens)
	}
	return f
}

// panicError turns what the device thread panicked with into an error. A memory fault has an address.
func panicError(p any) error {
	if fault, ok := p.(interface{ Addr() uintptr }); ok {
		return fmt.Errorf("memory fault at %#x on the device thread: was a weight file changed while it was mapped?", fault.Addr())
	}
	return fmt.Errorf("panic on the device thread: %v", p)
}

// notFinite is what a client reads when the numbers blew up.
func notFinite(layer, layers, position int) error {
	where := fmt.Sprintf("output of layer %d", layer)
	if layer >= layers {
		where = "output of the final norm or the head"
	}
	return fmt.Errorf("%s is not finite (NaN or Inf) at position %d: check the checkpoint with \"moectl doctor --model DIR\"", where, position)
}
