package deepseek

import (
	"errors"
	"fmt"

	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/exchange"
	"github.com/moerack/moerack/topology"
)

// share is the part of the network that a rank holds. Norms, router and the latent projections are on every rank.
type share struct {
	place       topology.Place
	vocab       span // rows of embedding and head
	heads       span
	dense       span // width of a dense layer
	shared      span // width of a layer's shared experts together
	experts     span // routed experts
	expertWidth span
}

// span is a run [from, to) of n things.
type span struct{ from, to, n int }

func (s span) len() int { return s.to - s.from }

// times gives the span of s in units of size each.
func (s span) times(size int) span { return span{s.from * size, s.to * size, s.n * size} }

// newShare cuts the network, or says all that keeps it from being cut.
func newShare(c *config.Config, p topology.Place) (share, error) {
	if p.TP < 1 || p.TPRank < 0 || p.TPRank >= p.TP || p.EP < 1 || p.EPRank < 0 || p.EPRank >= p.EP {
		return share{}, fmt.Errorf("deepseek: %+v is no place in a layout", p)
	}
	s := share{place: p}
	var errs []error
	even := func(name string, n int) span {
		if n%p.TP != 0 {
			errs = append(errs, fmt.Errorf("deepseek: tensor parallelism of %d must divide the %s of %d", p.TP, name, n))
		}
		from, to := topology.Slice(n, p.TP, p.TPRank)
		return span{from, to, n}
	}
	s.heads = even("attention heads", c.NumHeads)
	s.vocab.n = c.VocabSize
	if s.vocab.from, s.vocab.to = topology.VocabSlice(c.VocabSize, p.TP, p.TPRank); s.vocab.len() == 0 {
		errs = append(errs, fmt.Errorf("deepseek: tensor parallelism of %d leaves rank %d no part of the vocabulary of %d", p.TP, p.TPRank, c.VocabSize))
	}
	if c.FirstKDenseReplace > 0 {
		s.dense = even("width of dense layers", c.IntermediateSize)
	}
	if c.FirstKDenseReplace < c.NumLayers {
		s.shared = even("width of shared experts", c.MoEIntermediateSize*c.NumSharedExperts)
		if c.NumRoutedExperts%p.EP != 0 {
			errs = append(errs, fmt.Errorf("deepseek: %d ranks must divide the %d experts", p.EP, c.NumRoutedExperts))
		}
		from, to := topology.ExpertMap{Experts: c.NumRoutedExperts, Ranks: p.EP}.Range(p.EPRank)
		s.experts = span{from, to, c.NumRoutedExperts}
		s.expertWidth = span{0, c.MoEIntermediateSize, c.MoEIntermediateSize}
		if p.EP == 1 {
			s.expertWidth = even("width of experts", c.MoEIntermediateSize)
		}
	}
	return s, errors.Join(errs...)
}

// cut reports whether the engine has several ranks.
func (s share) cut() bool { return s.place.TP > 1 }

// spread reports whether the experts are on several ranks.
func (s share) spread() bool { return s.place.EP > 1 }

// exchange is the one that serves this place.
func (s share) exchange() topology.Exchange {
	if s.spread() {
		return topology.AllGather
	}
	return topology.Local
}

// own returns which of n rows this rank brings to the experts: where they are spread over the engine's ranks too, its slice.
func (s share) own(n int) (from, to int) {
	if !s.spread() {
		return 0, n
	}
	return topology.Slice(n, s.place.TP, s.place.TPRank)
}

// logits is the width of the logits that a rank keeps: all of them on the engine's first.
func (s share) logits() int {
	if s.place.TPRank == 0 {
		return s.vocab.n
	}
	return s.vocab.len()
}

// sizes are what the exchange is made for.
func (s share) sizes(c *config.Config, rows int) exchange.Sizes {
	from, to := s.own(rows)
	return exchange.Sizes{
		Rows: to - from, Hidden: c.HiddenSize, Experts: c.NumRoutedExperts, PerToken: c.NumExpertsPerTok, Ranks: s.place.EP, Rank: s.place.EPRank,
	}
}
