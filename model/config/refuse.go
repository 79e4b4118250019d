package config

// changing lists the keys, beyond those read elsewhere, whose value would change
// the computation. All other unknown keys are ignored, among them what training
// leaves behind (ep_size, pretraining_tp, seq_aux, aux_loss_alpha, auto_map, …).
var changing = []struct {
	key      string
	harmless any // beside null and absence
	want     string
}{
	{"index_topk", nil, "must be absent (sparse attention is not supported)"},
	{"use_qk_norm", false, "must be false (norms of queries and keys are not supported)"},
	{"sliding_window", nil, "must be null (windowed attention is not supported)"},
	{"attention_bias", false, "must be false (biases are not supported)"},
	{"hidden_act", "silu", `must be "silu"`},
	{"tie_word_embeddings", false, "must be false (an output head of its own is needed)"},
	{"rope_interleave", true, "must be true (rotary pairs are adjacent dimensions)"},
}

// refuse reports every key whose value changes the computation in a way that is
// not supported.
func (c *Config) refuse(d *document) {
	for _, k := range changing {
		if d.has(k.key) && d.values[k.key] != k.harmless {
			d.fault(k.key, k.want)
		}
	}
	if !d.absent("moe_layer_freq") {
		if n, ok := whole(d.values["moe_layer_freq"]); !ok || n != 1 {
			d.fault("moe_layer_freq", "must be 1 (every layer from first_k_dense_replace on has experts)")
		}
	}
}
