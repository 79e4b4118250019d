package config

import (
	"fmt"
	"strconv"
	"strings"
)

// checkRouting reports sizes of the feed-forward part that contradict each other,
// leaving out those already reported as unknown.
func (c *Config) checkRouting(d *document) {
	fault := func(key string, value int, format string, args ...any) {
		d.report.fault(d.path, key, strconv.Itoa(value), fmt.Sprintf(format, args...))
	}
	experts := c.NumRoutedExperts
	perGroup := unknown // experts in a group
	if experts != unknown && c.NGroup != unknown {
		if experts%c.NGroup != 0 {
			fault("n_group", c.NGroup, "must divide n_routed_experts=%d (%s)", experts, divisors(experts))
		} else if perGroup = experts / c.NGroup; c.TopKMethod == NoAuxTC && c.NGroup > 1 && perGroup < 2 {
			fault("n_group", c.NGroup, "leaves one expert in a group, noaux_tc scores a group by its best two (n_routed_experts=%d)", experts)
		}
	}
	if c.TopKGroup != unknown && c.NGroup != unknown && c.TopKGroup > c.NGroup {
		fault("topk_group", c.TopKGroup, "must be at most n_group=%d", c.NGroup)
		perGroup = unknown
	}
	if experts != unknown && c.NumExpertsPerTok > experts {
		fault("num_experts_per_tok", c.NumExpertsPerTok, "must be at most n_routed_experts=%d", experts)
	} else if reach := c.TopKGroup * perGroup; c.TopKMethod != Greedy && perGroup != unknown && c.TopKGroup != unknown && c.NumExpertsPerTok > reach {
		fault("num_experts_per_tok", c.NumExpertsPerTok, "must be at most %d, the experts in topk_group=%d groups of %d", reach, c.TopKGroup, perGroup)
	}
	if c.NumLayers != unknown && c.FirstKDenseReplace > c.NumLayers {
		if d.absent("first_k_dense_replace") {
			c.FirstKDenseReplace = c.NumLayers
		} else {
			fault("first_k_dense_replace", c.FirstKDenseReplace, "must be at most num_hidden_layers=%d", c.NumLayers)
		}
	}
	if c.TopKMethod == Greedy {
		c.NGroup, c.TopKGroup = 1, 1 // greedy looks at no groups
	}
}

// divisors lists the divisors of n, the middle left out when there are many.
func divisors(n int) string {
	var words []string
	for i := 1; i <= n; i++ {
		if n%i == 0 {
			words = append(words, strconv.Itoa(i))
		}
	}
	if len(words) > 12 {
		words = append(append(words[:8:8], "…"), words[len(words)-2:]...)
	}
	return strings.Join(words, ", ")
}
