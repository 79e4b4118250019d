package topology

import "fmt"

// Layout is how a model is spread: DataParallel engines of TensorParallel ranks each. Global rank = engine·TensorParallel + its
// place in the engine.
type Layout struct {
	DataParallel   int  // engines, ≥ 1
	TensorParallel int  // ranks of an engine, ≥ 1
	ExpertParallel bool // the experts are spread over all ranks, which then meet in MoE layers; else each engine holds all of them
}

// World returns the number of ranks.
func (l Layout) World() int { return l.DataParallel * l.TensorParallel }

// EP returns over how many ranks the experts of a group are spread.
func (l Layout) EP() int {
	if l.ExpertParallel {
		return l.World()
	}
	return 1
}

// Place is where a rank stands in the layout.
type Place struct {
	Rank       int // global
	Engine     int // data-parallel rank
	TP, TPRank int // ranks of the engine, and which of them this is
	EP, EPRank int // ranks the experts are spread over, and which of them this is; EP 1: all experts, cut by TP
}

// Place returns the place of a global rank.
func (l Layout) Place(rank int) Place {
	p := Place{Rank: rank, Engine: rank / l.TensorParallel, TP: l.TensorParallel, TPRank: rank % l.TensorParallel, EP: l.EP()}
	if l.ExpertParallel {
		p.EPRank = rank
	}
	return p
}

// Ranks returns the global ranks of an engine, [from, to).
func (l Layout) Ranks(engine int) (from, to int) {
	return engine * l.TensorParallel, (engine + 1) * l.TensorParallel
}

// Group is the engines whose ranks meet in MoE layers and step together.
type Group struct {
	Name    string
	Engines []int // ascending
}

// Groups returns the groups of the layout: one of all engines with expert parallelism, one of each engine without.
func (l Layout) Groups() []Group {
	if l.ExpertParallel {
		g := Group{Name: "ep"}
		for e := range l.DataParallel {
			g.Engines = append(g.Engines, e)
		}
		return []Group{g}
	}
	groups := make([]Group, l.DataParallel)
	for e := range groups {
		groups[e] = Group{Name: fmt.Sprintf("dp%d", e), Engines: []int{e}}
	}
	return groups
}
