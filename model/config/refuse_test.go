package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Every directory of testdata/configs is refused with what was found, what is
// supported and the file that shows it.
func TestRefuseForeignDirectories(t *testing.T) {
	const (
		archs = "DeepseekV2ForCausalLM, DeepseekV3ForCausalLM"
		fp8   = `supported: quant_method "fp8" in 128x128 blocks`
	)
	tests := map[string][]string{
		"fam-glm45":       {`architectures[0]="Glm4MoeForCausalLM"`, archs},
		"fam-glm47-flash": {`architectures[0]="Glm4MoeLiteForCausalLM"`, archs},
		"fam-glm5":        {`architectures[0]="GlmMoeDsaForCausalLM"`, archs},
		"fam-gpt-oss":     {`architectures[0]="GptOssForCausalLM"`, archs},
		"fam-kimi-k25":    {`architectures[0]="KimiK25ForConditionalGeneration"`, archs},
		"fam-llama":       {`architectures[0]="LlamaForCausalLM"`, archs},
		"fam-mixtral":     {`architectures[0]="MixtralForCausalLM"`, archs},
		"fam-qwen2":       {`architectures[0]="Qwen2ForCausalLM"`, archs},
		"fam-qwen3-moe":   {`architectures[0]="Qwen3MoeForCausalLM"`, archs},
		"fam-v1-moe":      {`architectures[0]="DeepseekForCausalLM"`, archs},
		"fam-v32":         {`architectures[0]="DeepseekV32ForCausalLM"`, archs},
		"fam-v4":          {`architectures[0]="DeepseekV4ForCausalLM"`, archs},
		"q-ascend-mindie": {`quantize="w8a8_dynamic"`, "quantization_config.quant_method: missing", "quant_model_description_w8a8_dynamic.json", `model_quant_type="W8A8_DYNAMIC"`, fp8},
		"q-ascend-w8a8":   {"quant_model_description.json", `model_quant_type="W8A8_DYNAMIC"`, fp8},
		"q-awq":           {`quantization_config.quant_method="awq"`, fp8},
		"q-bnb":           {`quantization_config.quant_method="bitsandbytes"`, fp8},
		"q-ct-int4-pack":  {`quantization_config.quant_method="compressed-tensors"`, fp8},
		"q-ct-int8":       {`quantization_config.quant_method="compressed-tensors"`, `quantize="w8a8_dynamic"`, fp8},
		"q-ct-nvfp4":      {`quantization_config.quant_method="compressed-tensors"`, fp8},
		"q-gguf-only":     {"model-Q4_K_M.gguf", "GGUF", "*.safetensors"},
		"q-gptq":          {`quantization_config.quant_method="gptq"`, fp8},
		"q-mlx":           {`quantization={"bits":4`, fp8},
		"q-modelopt":      {`quantization_config.quant_method="modelopt"`, fp8},
		"q-no-method":     {"quantization_config.quant_method: missing", fp8},
		"q-pickle-only":   {"pytorch_model.bin", "pickle", "*.safetensors", "norm_topk_prob=true"},
		"q-unknown":       {`quantization_config.quant_method="humming"`, fp8},
	}
	entries, err := os.ReadDir("testdata/configs")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(tests) {
		t.Errorf("%d directories in testdata/configs, the table has %d", len(entries), len(tests))
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			words, ok := tests[e.Name()]
			if !ok {
				t.Fatal("not in the table")
			}
			dir := filepath.Join("testdata/configs", e.Name())
			if e.Name() != "q-gguf-only" && e.Name() != "q-ascend-w8a8" {
				words = append(words, filepath.Join(dir, "config.json"))
			}
			mustRefuse(t, dir, words...)
		})
	}
}

// Quantization records of other exporters beside a clean configuration.
func TestRefuseQuantizationRecords(t *testing.T) {
	for _, name := range []string{"hf_quant_config.json", "quantize_config.json", "quant_config.json", "quant_model_description_x.json"} {
		dir := changed(t, "tiny-v3", nil)
		write(t, filepath.Join(dir, name), "not even JSON")
		mustRefuse(t, dir, filepath.Join(dir, name)+": describes quantized weights")
	}
}

// GGUF and pickle files beside safetensors do no harm.
func TestForeignFilesBesideSafetensors(t *testing.T) {
	dir := changed(t, "tiny-v3", nil)
	write(t, filepath.Join(dir, "model.safetensors"), "")
	write(t, filepath.Join(dir, "model.gguf"), "")
	write(t, filepath.Join(dir, "pytorch_model-00001-of-00002.bin"), "")
	mustLoad(t, dir)
}

// One fault each: the key with its value is named, and what is legal.
func TestRefuseKeys(t *testing.T) {
	yarn := func(key string, v any) keys {
		scaling := keys{"type": "yarn", "factor": 4, "original_max_position_embeddings": 256}
		if _, remove := v.(gone); remove {
			delete(scaling, key)
		} else {
			scaling[key] = v
		}
		return keys{"rope_scaling": scaling}
	}
	fp8 := func(key string, v any) keys {
		q := keys{"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": []int{128, 128}}
		if _, remove := v.(gone); remove {
			delete(q, key)
		} else {
			q[key] = v
		}
		return keys{"quantization_config": q}
	}
	tests := []struct {
		model   string
		changes keys
		key     string
		words   string
	}{
		// Keys that change the computation.
		{"tiny-v3", keys{"index_topk": 64}, "index_topk", "index_topk=64: must be absent"},
		{"tiny-v3", keys{"use_qk_norm": true}, "use_qk_norm", "use_qk_norm=true: must be false"},
		{"tiny-v3", keys{"sliding_window": 128}, "sliding_window", "sliding_window=128: must be null"},
		{"tiny-v3", keys{"attention_bias": true}, "attention_bias", "attention_bias=true: must be false"},
		{"tiny-v3", keys{"hidden_act": "gelu"}, "hidden_act", `hidden_act="gelu": must be "silu"`},
		{"tiny-v3", keys{"hidden_act": []string{"silu"}}, "hidden_act", `must be "silu"`},
		{"tiny-v3", keys{"tie_word_embeddings": true}, "tie_word_embeddings", "tie_word_embeddings=true: must be false"},
		{"tiny-v3", keys{"rope_interleave": false}, "rope_interleave", "must be true"},
		{"tiny-v3", keys{"moe_layer_freq": 2}, "moe_layer_freq", "moe_layer_freq=2: must be 1"},
		{"tiny-v3", keys{"moe_layer_freq": []int{0, 1}}, "moe_layer_freq", "moe_layer_freq=[0,1]: must be 1"},
		{"tiny-v3", keys{"scoring_func": "sqrtsoftplus"}, "scoring_func", `scoring_func="sqrtsoftplus": not supported for DeepseekV3ForCausalLM (supported: sigmoid)`},
		{"tiny-v3", keys{"topk_method": "greedy"}, "topk_method", `topk_method="greedy": not supported for DeepseekV3ForCausalLM (supported: noaux_tc)`},
		{"tiny-v2lite", keys{"topk_method": "noaux_tc"}, "topk_method", "supported: greedy, group_limited_greedy"},
		{"tiny-v2lite", keys{"scoring_func": "sigmoid"}, "scoring_func", "supported: softmax"},
		{"tiny-v3", keys{"num_key_value_heads": 1}, "num_key_value_heads", "num_key_value_heads=1: must equal num_attention_heads=5"},
		{"tiny-v2lite", keys{"norm_topk_prob": true}, "norm_topk_prob", "norm_topk_prob=true: must be false for DeepseekV2ForCausalLM"},
		{"tiny-v3", keys{"quantization": keys{"bits": 4}}, "quantization", `quantization={"bits":4}`},
		{"tiny-v3", keys{"quantize": "w8a8"}, "quantize", `quantize="w8a8"`},
		{"tiny-v3", keys{"compression_config": keys{}}, "compression_config", "compression_config={}"},
		// Dispatch.
		{"tiny-v3", keys{"architectures": "DeepseekV3ForCausalLM"}, "architectures", "want a list"},
		{"tiny-v3", keys{"architectures": []int{3}}, "architectures[0]", "architectures[0]=3: not supported"},
		{"tiny-v3", keys{"architectures": []string{"deepseekv3forcausallm"}}, "architectures[0]", "supported architectures: DeepseekV2ForCausalLM, DeepseekV3ForCausalLM"},
		{"tiny-v3", keys{"architectures": gone{}, "model_type": "llama"}, "model_type", `model_type="llama": not supported`},
		{"tiny-v3", keys{"architectures": gone{}, "model_type": gone{}}, "architectures", "architectures: missing"},
		{"tiny-v3", keys{"model_type": 3}, "model_type", "want a string"},
		// Rotary embedding.
		{"tiny-v3", yarn("type", "linear"), "rope_scaling.type", `rope_scaling.type="linear": not supported (supported: default, yarn)`},
		{"tiny-v3", yarn("type", gone{}), "rope_scaling.type", "missing beside factor"},
		{"tiny-v3", yarn("rope_type", "default"), "rope_scaling.rope_type", `contradicts type="yarn"`},
		{"tiny-v3", yarn("rope_type", "llama3"), "rope_scaling.rope_type", "not supported"},
		{"tiny-v3", yarn("factor", gone{}), "rope_scaling.factor", "missing"},
		{"tiny-v3", yarn("factor", 0.5), "rope_scaling.factor", "want a number from 1"},
		{"tiny-v3", yarn("original_max_position_embeddings", gone{}), "rope_scaling.original_max_position_embeddings", "missing"},
		{"tiny-v3", yarn("beta_fast", 0.5), "rope_scaling.beta_fast", "must be at least beta_slow=1"},
		{"tiny-v3", yarn("attention_factor", 1.2), "rope_scaling.attention_factor", "not supported"},
		{"tiny-v3", yarn("truncate", false), "rope_scaling.truncate", "not supported"},
		{"tiny-v3", keys{"rope_scaling": "yarn"}, "rope_scaling", "want an object or null"},
		{"tiny-v3", keys{"rope_parameters": keys{"rope_type": "default"}}, "rope_parameters", "contradicts rope_scaling"},
		{"tiny-v3", keys{"rope_scaling": nil, "rope_parameters": keys{"rope_theta": 5e5}}, "rope_parameters.rope_theta", "contradicts rope_theta=10000"},
		{"tiny-v3", keys{"rope_scaling": nil, "rope_parameters": keys{"main": keys{}}}, "rope_parameters.main", "want one set of parameters"},
		{"tiny-v3", keys{"rope_theta": 0}, "rope_theta", "want a number above 1"},
		// FP8.
		{"tiny-v3", fp8("quant_method", 8), "quantization_config.quant_method", "quant_method=8: not supported"},
		{"tiny-v3", fp8("fmt", "e5m2"), "quantization_config.fmt", `fmt="e5m2": not supported`},
		{"tiny-v3", fp8("activation_scheme", "static"), "quantization_config.activation_scheme", `supported: "dynamic"`},
		{"tiny-v3", fp8("scale_fmt", "e8"), "quantization_config.scale_fmt", "ue8m0"},
		{"tiny-v3", fp8("weight_block_size", gone{}), "quantization_config.weight_block_size", "one scale per tensor is not supported"},
		{"tiny-v3", fp8("weight_block_size", []int{64, 64}), "quantization_config.weight_block_size", "weight_block_size=[64,64]: not supported (supported: [128,128])"},
		{"tiny-v3", fp8("weight_block_size", []int{128}), "quantization_config.weight_block_size", "weight_block_size=[128]"},
		{"tiny-v3", fp8("weight_block_size", 128), "quantization_config.weight_block_size", "weight_block_size=128"},
		{"tiny-v3", keys{"quantization_config": "fp8"}, "quantization_config", "want an object or null"},
		// Sizes.
		{"tiny-v3", keys{"hidden_size": gone{}}, "hidden_size", "hidden_size: missing, want a whole number"},
		{"tiny-v3", keys{"q_lora_rank": gone{}}, "q_lora_rank", "q_lora_rank: missing, want null"},
		{"tiny-v3", keys{"hidden_size": 1 << 21}, "hidden_size", "hidden_size=2097152: want a whole number from 1 to 1048576"},
		{"tiny-v3", keys{"hidden_size": raw("1e400")}, "hidden_size", "hidden_size=1e400"},
		{"tiny-v3", keys{"vocab_size": -5}, "vocab_size", "vocab_size=-5"},
		{"tiny-v3", keys{"num_hidden_layers": 2.5}, "num_hidden_layers", "num_hidden_layers=2.5"},
		{"tiny-v3", keys{"num_hidden_layers": nil}, "num_hidden_layers", "num_hidden_layers=null"},
		{"tiny-v3", keys{"num_attention_heads": true, "num_key_value_heads": nil}, "num_attention_heads", "num_attention_heads=true"},
		{"tiny-v3", keys{"qk_rope_head_dim": 15}, "qk_rope_head_dim", "qk_rope_head_dim=15: must be even"},
		{"tiny-v3", keys{"rms_norm_eps": 0}, "rms_norm_eps", "a number between 0 and 1"},
		{"tiny-v3", keys{"rms_norm_eps": "1e-6"}, "rms_norm_eps", `rms_norm_eps="1e-6"`},
		{"tiny-v3", keys{"first_k_dense_replace": 9}, "first_k_dense_replace", "must be at most num_hidden_layers=4"},
		{"tiny-v3", keys{"norm_topk_prob": "yes"}, "norm_topk_prob", "want true or false"},
		{"tiny-v3", keys{"n_group": 3}, "n_group", "n_group=3: must divide n_routed_experts=16 (1, 2, 4, 8, 16)"},
		{"tiny-v3", keys{"n_group": 16, "topk_group": 8}, "n_group", "best two"},
		{"tiny-v3", keys{"topk_group": 5}, "topk_group", "topk_group=5: must be at most n_group=4"},
		{"tiny-v3", keys{"num_experts_per_tok": 17}, "num_experts_per_tok", "must be at most n_routed_experts=16"},
		{"tiny-v3", keys{"num_experts_per_tok": 9}, "num_experts_per_tok", "num_experts_per_tok=9: must be at most 8, the experts in topk_group=2 groups of 4"},
		{"random/rnd-v2-group", keys{"n_group": nil}, "n_group", "n_group=null"},
		{"tiny-v3", keys{"eos_token_id": -1}, "eos_token_id", "eos_token_id=-1: want a token id"},
		{"tiny-v3", keys{"eos_token_id": "1"}, "eos_token_id", `eos_token_id="1"`},
		{"tiny-v3", keys{"bos_token_id": 5000}, "bos_token_id", "bos_token_id=5000: want one token id from 0 to 2047"},
	}
	for _, tt := range tests {
		t.Run(tt.key+" "+tt.words, func(t *testing.T) {
			dir := changed(t, tt.model, tt.changes)
			err := mustRefuse(t, dir, filepath.Join(dir, "config.json"), tt.words)
			if got := faultKeys(t, err); !slices.Equal(got, []string{tt.key}) {
				t.Errorf("faults of %q, want only %q", got, tt.key)
			}
		})
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	dir := changed(t, "tiny-v3", keys{
		"hidden_size": "160", "vocab_size": gone{}, "qk_rope_head_dim": 7, "n_group": 5, "topk_group": 6, "num_experts_per_tok": 20,
		"attention_bias": true, "quantize": "w8a8", "index_topk": 8,
	})
	write(t, filepath.Join(dir, "quant_model_description.json"), "{}")
	err := mustRefuse(t, dir, "10 faults")
	want := []string{"", "hidden_size", "qk_rope_head_dim", "vocab_size", "quantize", "index_topk", "attention_bias", "n_group", "topk_group", "num_experts_per_tok"}
	if got := faultKeys(t, err); !slices.Equal(got, want) {
		t.Errorf("faults of %q, want %q", got, want)
	}
}
