package config

import (
	"fmt"
	"strings"
)

// routing holds what the published configuration class of an architecture takes
// for absent keys, and the methods its published code computes.
type routing struct {
	scoring         ScoringFunc
	methods         []TopKMethod // the first is the default
	sharedExperts   int
	firstDense      int
	nGroup          int // 0: no default
	topKGroup       int
	normTopKProb    bool
	routedScaling   float64
	normTopKProbFix bool // norm_topk_prob must have its default
}

var published = map[Architecture]routing{
	// The published V2 class has the misspelled default "gready", which its own
	// code refuses; greedy is meant.
	DeepseekV2: {scoring: Softmax, methods: []TopKMethod{Greedy, GroupLimitedGreedy}, routedScaling: 1, normTopKProbFix: true},
	DeepseekV3: {
		scoring: Sigmoid, methods: []TopKMethod{NoAuxTC}, sharedExperts: 1, firstDense: 3,
		nGroup: 8, topKGroup: 4, normTopKProb: true, routedScaling: 2.5,
	},
}

// readRouting reads which layers have experts and how tokens choose them.
func (c *Config) readRouting(d *document) {
	p := published[c.Architecture]
	c.NumRoutedExperts = d.integer("n_routed_experts", 1, maxExperts)
	c.NumExpertsPerTok = d.integer("num_experts_per_tok", 1, maxExperts)
	if d.has("n_shared_experts") {
		c.NumSharedExperts = d.integer("n_shared_experts", 0, maxExperts)
	} else if d.absent("n_shared_experts") {
		c.NumSharedExperts = p.sharedExperts
	}
	c.FirstKDenseReplace = d.integerOr("first_k_dense_replace", p.firstDense, 0, maxLayers)
	c.RoutedScalingFactor = d.numberOr("routed_scaling_factor", p.routedScaling, positive, "a number above 0")
	c.NormTopKProb = d.boolOr("norm_topk_prob", p.normTopKProb)
	if p.normTopKProbFix && c.NormTopKProb != p.normTopKProb {
		d.fault("norm_topk_prob", fmt.Sprintf("must be false for %s (known implementations disagree on what true means)", c.Architecture))
	}
	c.ScoringFunc = choice(d, "scoring_func", c.Architecture, p.scoring)
	c.TopKMethod = choice(d, "topk_method", c.Architecture, p.methods...)

	if c.TopKMethod == Greedy && !d.has("n_group") {
		c.NGroup = 1
	} else {
		c.NGroup = readGroups(d, "n_group", p.nGroup)
	}
	if c.TopKMethod == Greedy && !d.has("topk_group") {
		c.TopKGroup = 1
	} else {
		c.TopKGroup = readGroups(d, "topk_group", p.topKGroup)
	}
}

func readGroups(d *document, key string, absent int) int {
	if absent == 0 {
		return d.integer(key, 1, maxExperts)
	}
	return d.integerOr(key, absent, 1, maxExperts)
}

// choice gives one of the legal names, the first one when the key is absent.
func choice[T ~string](d *document, key string, a Architecture, legal ...T) T {
	if d.absent(key) {
		return legal[0]
	}
	name, _ := d.values[key].(string)
	words := make([]string, len(legal))
	for i, l := range legal {
		if name == string(l) {
			return l
		}
		words[i] = string(l)
	}
	d.fault(key, fmt.Sprintf("not supported for %s (supported: %s)", a, strings.Join(words, ", ")))
	return legal[0]
}
