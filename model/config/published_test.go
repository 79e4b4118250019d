package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/moerack/moerack/model/config"
)

// TestPublishedSizes loads the keys and figures of published configurations, as their config.json files give them.
func TestPublishedSizes(t *testing.T) {
	const (
		training = `"ep_size": 1, "pretraining_tp": 1, "seq_aux": true, "aux_loss_alpha": 0.001, "initializer_range": 0.02,
			"attention_dropout": 0.0, "use_cache": true, "torch_dtype": "bfloat16", "tie_word_embeddings": false,`
		mla = `"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "attention_bias": false,
			"hidden_act": "silu", "moe_layer_freq": 1,`
		fp8 = `"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},`
	)
	for _, tt := range []struct {
		name, json    string
		heads, layers int
		experts, k    int
		qLora         int
		scale, factor float64 // factor 0: no YaRN
		fp8           bool
	}{
		{
			"DeepSeek-V2-Lite", training + mla + `"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
			"auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV2Config"}, "bos_token_id": 100000, "eos_token_id": 100001,
			"first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944, "max_position_embeddings": 163840,
			"moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false,
			"num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null,
			"rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707,
			"mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000,
			"routed_scaling_factor": 1.0, "scoring_func": "softmax", "topk_group": 1, "topk_method": "greedy", "vocab_size": 102400`,
			16, 27, 64, 6, 0, 1, 40, false,
		},
		{
			"DeepSeek-V2", training + mla + `"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
			"bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1, "hidden_size": 5120, "intermediate_size": 12288,
			"max_position_embeddings": 163840, "moe_intermediate_size": 1536, "n_group": 8, "n_routed_experts": 160, "n_shared_experts": 2,
			"norm_topk_prob": false, "num_attention_heads": 128, "num_experts_per_tok": 6, "num_hidden_layers": 60,
			"num_key_value_heads": 128, "q_lora_rank": 1536, "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1,
			"factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "type": "yarn"},
			"rope_theta": 10000, "routed_scaling_factor": 16.0, "scoring_func": "softmax", "topk_group": 3,
			"topk_method": "group_limited_greedy", "vocab_size": 102400`,
			128, 60, 160, 6, 1536, 16, 40, false,
		},
		{
			"DeepSeek-V3", training + mla + fp8 + `"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
			"bos_token_id": 0, "eos_token_id": 1, "first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432,
			"max_position_embeddings": 163840, "moe_intermediate_size": 2048, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
			"norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
			"num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "rms_norm_eps": 1e-06,
			"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
			"original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 2.5,
			"scoring_func": "sigmoid", "topk_group": 4, "topk_method": "noaux_tc", "vocab_size": 129280`,
			128, 61, 256, 8, 1536, 2.5, 40, true,
		},
		{
			"Moonlight-16B-A3B", training + mla + `"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
			"bos_token_id": 163584, "eos_token_id": 163585, "first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 11264,
			"max_position_embeddings": 8192, "moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
			"norm_topk_prob": true, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27,
			"num_key_value_heads": 16, "num_nextn_predict_layers": 0, "q_lora_rank": null, "rms_norm_eps": 1e-05, "rope_scaling": null,
			"rope_theta": 50000.0, "routed_scaling_factor": 2.446, "scoring_func": "sigmoid", "topk_group": 1,
			"topk_method": "noaux_tc", "vocab_size": 163840`,
			16, 27, 64, 6, 0, 2.446, 0, false,
		},
		{
			"Kimi-K2", training + mla + fp8 + `"architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2",
			"bos_token_id": 163584, "eos_token_id": 163585, "first_k_dense_replace": 1, "hidden_size": 7168, "intermediate_size": 18432,
			"max_position_embeddings": 131072, "moe_intermediate_size": 2048, "n_group": 1, "n_routed_experts": 384, "n_shared_experts": 1,
			"norm_topk_prob": true, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61,
			"num_key_value_heads": 64, "num_nextn_predict_layers": 0, "q_lora_rank": 1536, "rms_norm_eps": 1e-06,
			"rope_scaling": {"beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0,
			"original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 50000.0, "routed_scaling_factor": 2.827,
			"scoring_func": "sigmoid", "topk_group": 1, "topk_method": "noaux_tc", "vocab_size": 163840`,
			64, 61, 384, 8, 1536, 2.827, 32, true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{"+tt.json+"}"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			factor := 0.0
			if c.Rope != nil {
				factor = c.Rope.Factor
			}
			if c.NumHeads != tt.heads || c.NumLayers != tt.layers || c.NumRoutedExperts != tt.experts || c.NumExpertsPerTok != tt.k ||
				c.QLoraRank != tt.qLora || c.RoutedScalingFactor != tt.scale || factor != tt.factor || c.Quantization.FP8() != tt.fp8 {
				t.Errorf("loaded %+v", c)
			}
			if len(c.Warnings) > 0 {
				t.Errorf("warnings %q for a published configuration", c.Warnings)
			}
		})
	}
}
