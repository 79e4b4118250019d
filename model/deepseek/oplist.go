package deepseek

import (
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// Ops returns the list of a step: what every rank of a group does, in this order. Forward and Share walk it, so what
// runs and what is reported is one thing. Of the place only the sizes count, so the list is the same on all ranks that meet;
// rows and samples do not count, so that it is the same for a step of padding.
func Ops(c *config.Config, p topology.Place, s nn.Step) []nn.Op {
	cut := p.TP > 1
	l := &opList{layer: -1}
	l.add(true, nn.OpEmbed)
	l.add(cut, nn.OpEmbedReduce)
	for i := range c.NumLayers {
		l.layer = i
		l.add(true, nn.OpAttention)
		l.add(cut, nn.OpAttentionReduce)
		switch {
		case !c.IsMoE(i):
			l.add(true, nn.OpMLP)
			l.add(cut, nn.OpMLPReduce)
		case s.Exchange == topology.Local:
			l.add(true, nn.OpRoute, nn.OpDispatch)
			l.add(c.NumSharedExperts > 0, nn.OpShared)
			l.add(true, nn.OpExperts, nn.OpCombine)
			l.add(cut, nn.OpExpertsReduce)
		default:
			l.add(true, nn.OpRoute, nn.OpA2E)
			l.add(c.NumSharedExperts > 0, nn.OpShared)
			l.add(c.NumSharedExperts > 0 && cut, nn.OpSharedReduce)
			l.add(true, nn.OpExperts, nn.OpE2A, nn.OpCombine)
			l.add(cut, nn.OpGather)
		}
	}
	l.layer = -1
	l.add(true, nn.OpLogits)
	l.add(cut, nn.OpLogitsGather)
	l.add(true, nn.OpSample)
	l.add(cut, nn.OpTokens)
	return l.ops
}

// opList is a list under construction.
type opList struct {
	ops   []nn.Op
	layer int
}

func (l *opList) add(wanted bool, names ...nn.OpName) {
	if !wanted {
		return
	}
	for _, n := range names {
		l.ops = append(l.ops, nn.Op{Name: n, Layer: l.layer})
	}
}
