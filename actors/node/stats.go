package node

import (
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/expertgroup"
	"github.com/moerack/moerack/model/nn"
)

// Stats returns the counts since the start, also after Close. Whoever has seen the end of an answer finds it counted.
func (n *Node) Stats() actors.Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := actors.Stats{Bus: &actors.BusStats{Kind: string(n.opts.Bus.Kind())}}
	n.counts.AddTo(s.Bus)
	for _, l := range n.ledgers {
		if l != nil { // the start got so far
			l.AddTo(&s)
		}
	}
	for i, f := range n.facts {
		s.Ranks = append(s.Ranks, actors.RankStats{Rank: n.first + i, WeightBytes: f.WeightBytes, Threads: f.Threads})
	}
	until := n.until
	if until.IsZero() {
		until = time.Now()
	}
	s.Seconds = until.Sub(n.since).Seconds()
	return s
}

// ExpertLoad returns what each expert on this node has served since the start, by rank and expert: where an expert is, and how much it is
// used. Padding rows are not in it.
func (n *Node) ExpertLoad() []expertgroup.Load {
	n.mu.Lock()
	defer n.mu.Unlock()
	loads := make([]*nn.Load, len(n.facts))
	for i, f := range n.facts {
		loads[i] = f.Load
	}
	return expertgroup.ExpertLoad(n.first, n.opts.Layout.TensorParallel, loads)
}
