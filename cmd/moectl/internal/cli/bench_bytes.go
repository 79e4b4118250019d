package cli

import (
	"fmt"
	"math"

	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
)

// stepBytes are what a decode step reads.
type stepBytes struct {
	always   float64 // weights that every step reads whole
	row      float64 // of the embedding
	expert   float64 // weights of a routed expert, the mean
	layers   int     // with experts
	picks    int     // experts of a row in such a layer
	position float64 // of the KV cache, over all layers
}

// stepBytes asks the checkpoint for what the rank was given, in the form that it has there by now.
func (b *engineBench) stepBytes() (stepBytes, error) {
	c, checkpoint := b.model.config, b.model.checkpoint
	form, err := nn.DType(b.settings.DType).Form(c)
	if err != nil {
		return stepBytes{}, err
	}
	if c.Quantization.W8A8 {
		form = weights.Stored
	}
	plain := form
	if plain == weights.Int8 { // not the embedding
		plain = weights.BFloat16
	}
	embedding := checkpoint.NewReaderFor(form)
	if _, err := embedding.Linear(weights.Matrix{Name: "model.embed_tokens.weight", Out: c.VocabSize, In: c.HiddenSize, Form: plain}); err != nil {
		return stepBytes{}, err
	}
	s := stepBytes{
		layers: max(0, c.NumLayers-c.FirstKDenseReplace), picks: c.NumExpertsPerTok, row: float64(embedding.Bytes()) / float64(c.VocabSize),
		position: float64(deepseek.KVBytesPerBlock(c, 1, nn.Limits{}.KVType())),
	}
	experts := checkpoint.NewReaderFor(form)
	for layer := c.FirstKDenseReplace; layer < c.NumLayers; layer++ {
		for e := range c.NumRoutedExperts {
			for _, m := range []struct {
				name    string
				out, in int
			}{{"gate", c.MoEIntermediateSize, c.HiddenSize}, {"up", c.MoEIntermediateSize, c.HiddenSize}, {"down", c.HiddenSize, c.MoEIntermediateSize}} {
				name := fmt.Sprintf("model.layers.%d.mlp.experts.%d.%s_proj.weight", layer, e, m.name)
				if _, err := experts.Linear(weights.Matrix{Name: name, Out: m.out, In: m.in, Form: form}); err != nil {
					return stepBytes{}, err
				}
			}
		}
	}
	if s.layers > 0 {
		s.expert = float64(experts.Bytes()) / float64(s.layers*c.NumRoutedExperts)
	}
	s.always = float64(b.node.Stats().Ranks[0].WeightBytes - embedding.Bytes() - experts.Bytes())
	return s, nil
}

// perToken is what a step of a batch reads, over its tokens, when each attends to so many positions and the experts have served
// rows.
func (s stepBytes) perToken(batch, positions int, rows map[int]int64) float64 {
	read := s.always + float64(s.layers)*distinct(s.picks, batch, rows)*s.expert
	return read/float64(batch) + s.row + s.position*float64(positions)
}

// distinct is how many experts the rows of a batch pick together in a layer, each row so many of them, if rows pick by themselves
// with the frequencies that the experts have served rows with. For one row that is what it picks.
func distinct(picks, batch int, rows map[int]int64) float64 {
	total := int64(0)
	for _, n := range rows {
		total += n
	}
	sum := 0.0
	for _, n := range rows {
		chance := min(1, float64(picks)*float64(n)/float64(max(1, total)))
		sum += 1 - math.Pow(1-chance, float64(batch))
	}
	return sum
}
