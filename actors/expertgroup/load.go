package expertgroup

import "github.com/moerack/moerack/model/nn"

// Load is what one physical expert has served.
type Load struct {
	Expert int   // global number
	Rank   int   // global rank that holds it; the first of several that hold a part each
	Rows   int64 // rows routed to it so far, over all layers
}

// ExpertLoad returns the load of the experts that ranks first, first+1, … hold, by rank and expert; loads are their counters
// (RankFacts.Load). Ranks of an engine that hold the same experts have cut each of them, tensorParallel ways, and all have
// counted the same rows: only the first is listed. Anyone may call it at any time.
func ExpertLoad(first, tensorParallel int, loads []*nn.Load) []Load {
	var out []Load
	for i, l := range loads {
		if l == nil {
			continue
		}
		if in := (first + i) % tensorParallel; in > 0 && i > 0 && loads[i-1] != nil && loads[i-1].First == l.First {
			continue
		}
		for e, rows := range l.Rows() {
			out = append(out, Load{Expert: l.First + e, Rank: first + i, Rows: rows})
		}
	}
	return out
}
