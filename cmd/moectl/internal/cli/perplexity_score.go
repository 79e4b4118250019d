package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// likelihood is what was scored so far.
type likelihood struct {
	tokens int
	nll    float64 // sum, nats
	rows   int     // computed
}

func (l likelihood) mean() float64       { return l.nll / float64(l.tokens) }
func (l likelihood) perplexity() float64 { return math.Exp(l.mean()) }

const (
	mostLogits = 64 << 20 // bytes of the logits of a step
	mostRows   = 512      // of a step
	scoreBlock = 16       // positions of a KV block
)

// scorer runs sequences on a model that is alone on its device and takes the logits of all positions.
type scorer struct {
	model  *deepseek.Model
	limits nn.Limits
	vocab  int
	table  []int32 // blocks of the one sequence
	steps  uint64
}

// scoreText loads the model on a device of its own, scores the windows of a text and tells progress after each. It returns early
// when ctx ends.
func scoreText(ctx context.Context, backend Backend, may Compute, files *modelFiles, lead, tokens []int32, list []window, progress func(windows int, soFar likelihood)) (sum likelihood, err error) {
	runtime.LockOSThread() // which a device lives on
	defer runtime.UnlockOSThread()
	device, err := backend.Open(0, may)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	longest := 0
	for _, w := range list {
		longest = max(longest, len(lead)+w.to-w.from)
	}
	vocab := files.config.VocabSize
	rows := min(longest, max(1, min(mostRows, mostLogits/4/vocab)))
	s := &scorer{vocab: vocab, limits: nn.Limits{
		Rows: rows, Samples: rows, Sequences: 1, ModelLen: longest, BlockSize: scoreBlock, Blocks: kv.BlocksFor(longest, scoreBlock),
	}}
	for b := range s.limits.Blocks {
		s.table = append(s.table, int32(b))
	}
	err = mapped(func() (err error) {
		alone := topology.Layout{DataParallel: 1, TensorParallel: 1}.Place(0)
		if s.model, err = deepseek.Load(ctx, device, files.config, alone, files.checkpoint.NewReaderFor(files.form), s.limits); err != nil {
			return err
		}
		defer s.model.Close()
		for i, w := range list {
			sequence := append(lead[:len(lead):len(lead)], tokens[w.from:w.to]...)
			if err := s.score(ctx, sequence, len(lead)+w.scored-w.from, &sum); err != nil {
				return fmt.Errorf("tokens %d … %d of the text: %w", w.from, w.to-1, err)
			}
			progress(i+1, sum)
		}
		return nil
	})
	return sum, err
}

// score runs a sequence from position 0 in as many steps as it takes, and adds the log-likelihoods of tokens [first, …), each
// given those before it; first is at least 1.
func (s *scorer) score(ctx context.Context, sequence []int32, first int, sum *likelihood) error {
	for from := 0; from < len(sequence); from += s.limits.Rows {
		b := s.batch(sequence, from, min(from+s.limits.Rows, len(sequence)), first)
		s.steps++
		out, err := s.model.Forward(ctx, b, nn.Step{Number: s.steps, Exchange: topology.Local, Stages: 1})
		if err != nil {
			return err
		}
		for i, row := range b.Samples {
			position := from + int(row)
			if layer := out.BadLayer[i]; layer >= 0 {
				return fmt.Errorf("position %d: the output of layer %d is not finite (moectl doctor --model looks for broken weights)", position, layer)
			}
			sum.nll -= logLikelihood(out.Logits[i*s.vocab:][:s.vocab], sequence[position+1])
			sum.tokens++
		}
		sum.rows += b.Rows()
		if err := s.model.Share(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// batch is positions [from, to) of a sequence. The logits are wanted of those whose next token is scored.
func (s *scorer) batch(sequence []int32, from, to, first int) *nn.Batch {
	b := &nn.Batch{Tables: s.table, Width: len(s.table)}
	for i := from; i < to; i++ {
		if i+1 >= first && i+1 < len(sequence) {
			b.Samples = append(b.Samples, int32(i-from))
		}
		b.Tokens = append(b.Tokens, sequence[i])
		b.Positions = append(b.Positions, int32(i))
		b.Slots = append(b.Slots, kv.Slot(s.table, i, s.limits.BlockSize))
		b.Seqs = append(b.Seqs, 0)
	}
	return b
}

// logLikelihood is the natural logarithm of a token's softmax, in float64. // logits (vocab), finite
func logLikelihood(logits []float32, token int32) float64 {
	most := logits[0]
	for _, v := range logits {
		most = max(most, v)
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - float64(most))
	}
	return float64(logits[token]) - float64(most) - math.Log(sum)
}
