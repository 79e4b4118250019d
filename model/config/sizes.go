package config

import "fmt"

// Limits far above any published model: a size beyond them is a broken file,
// and products of two sizes stay far from overflow.
const (
	maxWidth     = 1 << 20
	maxHeads     = 1 << 16
	maxLayers    = 1 << 14
	maxExperts   = 1 << 16
	maxVocab     = 1 << 24
	maxPositions = 1 << 30
)

// readSizes reads the shapes of the network. Sizes have no defaults: a file
// without them does not say what the model is.
func (c *Config) readSizes(d *document) {
	c.HiddenSize = d.integer("hidden_size", 1, maxWidth)
	c.NumLayers = d.integer("num_hidden_layers", 1, maxLayers)
	c.NumHeads = d.integer("num_attention_heads", 1, maxHeads)
	c.KVLoraRank = d.integer("kv_lora_rank", 1, maxWidth)
	c.QKNopeHeadDim = d.integer("qk_nope_head_dim", 1, maxWidth)
	c.QKRopeHeadDim = d.integer("qk_rope_head_dim", 1, maxWidth)
	if c.QKRopeHeadDim > 0 && c.QKRopeHeadDim%2 != 0 {
		d.fault("qk_rope_head_dim", "must be even (rotary embedding turns pairs)")
	}
	c.VHeadDim = d.integer("v_head_dim", 1, maxWidth)
	c.IntermediateSize = d.integer("intermediate_size", 1, maxWidth)
	c.MoEIntermediateSize = d.integer("moe_intermediate_size", 1, maxWidth)
	c.VocabSize = d.integer("vocab_size", 1, maxVocab)

	switch {
	case d.absent("q_lora_rank"):
		d.fault("q_lora_rank", fmt.Sprintf("missing, want null (queries are not compressed) or a whole number from 1 to %d", maxWidth))
	case d.has("q_lora_rank"):
		c.QLoraRank = d.integer("q_lora_rank", 1, maxWidth)
	}
	if d.has("num_key_value_heads") {
		if n := d.integer("num_key_value_heads", 1, maxHeads); n != unknown && c.NumHeads != unknown && n != c.NumHeads {
			d.fault("num_key_value_heads", fmt.Sprintf("must equal num_attention_heads=%d (MLA has no grouped heads)", c.NumHeads))
		}
	}

	positions := 2048 // the published classes' defaults
	if c.Architecture == DeepseekV3 {
		positions = 4096
	}
	c.MaxPositionEmbeddings = d.integerOr("max_position_embeddings", positions, 1, maxPositions)
	c.RMSNormEps = d.numberOr("rms_norm_eps", 1e-6, func(f float64) bool { return f > 0 && f < 1 }, "a number between 0 and 1")
	if d.has("num_nextn_predict_layers") {
		// Absent means none: files saved without the modules also lose the key,
		// whatever the published class has as default.
		c.NumNextNPredictLayers = d.integer("num_nextn_predict_layers", 0, maxLayers)
	}
}
