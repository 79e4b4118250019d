package config

import (
	"fmt"
	"math"
	"slices"
)

// readGeneration reads the sampling defaults.
func (c *Config) readGeneration(d *document) {
	number := func(key string, suits func(float64) bool, want string) *float64 {
		if !d.has(key) {
			return nil
		}
		f := d.number(key, suits, want)
		return &f
	}
	c.Generation.Temperature = number("temperature", nonNegative, "a number from 0")
	c.Generation.TopP = number("top_p", func(f float64) bool { return f > 0 && f <= 1 }, "a number above 0, at most 1")
	c.Generation.MinP = number("min_p", func(f float64) bool { return f >= 0 && f <= 1 }, "a number from 0 to 1")
	c.Generation.RepetitionPenalty = number("repetition_penalty", positive, "a number above 0")
	if d.has("top_k") {
		k := max(0, d.integer("top_k", -1, math.MaxInt32)) // -1 is another spelling of off
		c.Generation.TopK = &k
	}
}

// readTokens reads the ids of the special tokens. EOS ids of
// generation_config.json replace those of config.json.
func (c *Config) readTokens(d, generation *document) {
	source, eos := d, tokenIDs(d, "eos_token_id")
	if ids := tokenIDs(generation, "eos_token_id"); len(ids) > 0 {
		source, eos = generation, ids
	}
	for _, id := range eos {
		if int(id) >= c.VocabSize {
			source.report.warn("%s: eos_token_id %d is outside the vocabulary of %d tokens and is never produced", source.path, id, c.VocabSize)
		} else {
			c.EOSTokenIDs = append(c.EOSTokenIDs, id)
		}
	}
	if len(c.EOSTokenIDs) == 0 {
		d.report.warn("%s: no usable eos_token_id, neither here nor in %s: requests run to max_tokens", d.path, generationFile)
	}

	c.BOSTokenID = -1
	for _, doc := range []*document{d, generation} {
		if ids := tokenIDs(doc, "bos_token_id"); c.BOSTokenID < 0 && len(ids) > 0 {
			if c.VocabSize != unknown && (len(ids) > 1 || int(ids[0]) >= c.VocabSize) {
				doc.fault("bos_token_id", fmt.Sprintf("want one token id from 0 to %d, or null", c.VocabSize-1))
			}
			c.BOSTokenID = ids[0]
		}
	}
}

// tokenIDs reads an id or a list of ids, each once; null and absence give none.
func tokenIDs(d *document, key string) []int32 {
	if !d.has(key) {
		return nil
	}
	list, ok := d.values[key].([]any)
	if !ok {
		list = []any{d.values[key]}
	}
	var ids []int32
	for _, v := range list {
		n, ok := whole(v)
		if !ok || n < 0 || n > math.MaxInt32 {
			d.fault(key, "want a token id from 0, or a list of them")
			return nil
		}
		if !slices.Contains(ids, int32(n)) {
			ids = append(ids, int32(n))
		}
	}
	return ids
}
