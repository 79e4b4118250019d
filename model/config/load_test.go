package config_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/config"
)

func ptr[T any](v T) *T { return &v }

// The sizes are those of the table in test/models/README.md.
func TestLoadTestModels(t *testing.T) {
	generation := config.Generation{Temperature: ptr(0.6), TopP: ptr(0.95)}
	v3 := config.Config{
		Architecture: config.DeepseekV3, ModelType: "deepseek_v3",
		HiddenSize: 160, NumLayers: 4, VocabSize: 2048, MaxPositionEmbeddings: 1024, RMSNormEps: 1e-6,
		NumHeads: 5, QLoraRank: 96, KVLoraRank: 64, QKNopeHeadDim: 32, QKRopeHeadDim: 16, VHeadDim: 32, RopeTheta: 10000,
		Rope:             &config.YaRN{Factor: 4, OriginalMaxPositionEmbeddings: 256, BetaFast: 32, BetaSlow: 1, MScale: 1, MScaleAllDim: 1},
		IntermediateSize: 320, MoEIntermediateSize: 64, NumRoutedExperts: 16, NumSharedExperts: 1, NumExpertsPerTok: 4, FirstKDenseReplace: 1,
		ScoringFunc: config.Sigmoid, TopKMethod: config.NoAuxTC, NGroup: 4, TopKGroup: 2, NormTopKProb: true, RoutedScalingFactor: 2.5,
		NumNextNPredictLayers: 1, EOSTokenIDs: []int32{1}, BOSTokenID: 0, Generation: generation,
	}
	fp8 := v3
	fp8.Quantization = config.Quantization{BlockRows: 128, BlockCols: 128}
	rnd := config.Config{
		Architecture: config.DeepseekV2, ModelType: "deepseek_v2",
		HiddenSize: 64, NumLayers: 3, VocabSize: 2048, MaxPositionEmbeddings: 512, RMSNormEps: 1e-6,
		NumHeads: 4, KVLoraRank: 32, QKNopeHeadDim: 16, QKRopeHeadDim: 8, VHeadDim: 16, RopeTheta: 10000,
		IntermediateSize: 128, MoEIntermediateSize: 32, NumRoutedExperts: 8, NumSharedExperts: 2, NumExpertsPerTok: 3, FirstKDenseReplace: 1,
		ScoringFunc: config.Softmax, TopKMethod: config.Greedy, NGroup: 1, TopKGroup: 1, RoutedScalingFactor: 1,
		EOSTokenIDs: []int32{1}, Generation: generation,
	}
	group := rnd
	group.VocabSize, group.QLoraRank, group.NumRoutedExperts, group.NumExpertsPerTok = 320, 48, 16, 4
	group.Rope = &config.YaRN{Factor: 40, OriginalMaxPositionEmbeddings: 64, BetaFast: 32, BetaSlow: 1, MScale: 0.707, MScaleAllDim: 0.707}
	group.TopKMethod, group.NGroup, group.TopKGroup, group.RoutedScalingFactor = config.GroupLimitedGreedy, 4, 2, 16
	group.Generation = config.Generation{}
	yarn := group
	yarn.Architecture, yarn.ModelType, yarn.NumSharedExperts = config.DeepseekV3, "deepseek_v3", 1
	yarn.Rope = &config.YaRN{Factor: 8, OriginalMaxPositionEmbeddings: 64, BetaFast: 32, BetaSlow: 1, MScale: 1, MScaleAllDim: 1}
	yarn.ScoringFunc, yarn.TopKMethod, yarn.NormTopKProb, yarn.RoutedScalingFactor = config.Sigmoid, config.NoAuxTC, true, 2.5
	lite := rnd
	lite.HiddenSize, lite.NumLayers, lite.MaxPositionEmbeddings, lite.NumHeads, lite.KVLoraRank = 192, 4, 1024, 6, 64
	lite.QKNopeHeadDim, lite.QKRopeHeadDim, lite.VHeadDim = 32, 16, 32
	lite.Rope = &config.YaRN{Factor: 4, OriginalMaxPositionEmbeddings: 256, BetaFast: 32, BetaSlow: 1, MScale: 0.707, MScaleAllDim: 0.707}
	lite.IntermediateSize, lite.MoEIntermediateSize, lite.NumRoutedExperts, lite.NumExpertsPerTok = 384, 64, 16, 4

	for model, want := range map[string]config.Config{
		"tiny-v2lite": lite, "tiny-v3": v3, "tiny-v3-fp8": fp8,
		"random/rnd-v2-greedy": rnd, "random/rnd-v2-group": group, "random/rnd-v3-yarn": yarn,
	} {
		t.Run(filepath.Base(model), func(t *testing.T) {
			c := mustLoad(t, filepath.Join(models, model))
			if !reflect.DeepEqual(*c, want) {
				t.Errorf("got  %+v\nwant %+v", *c, want)
			}
			if c.Quantization.FP8() != (model == "tiny-v3-fp8") {
				t.Errorf("FP8() = %v", c.Quantization.FP8())
			}
			if c.QKHeadDim() != c.QKNopeHeadDim+c.QKRopeHeadDim || c.IsMoE(0) || !c.IsMoE(1) {
				t.Errorf("derived: qk %d, IsMoE(0) %v, IsMoE(1) %v", c.QKHeadDim(), c.IsMoE(0), c.IsMoE(1))
			}
		})
	}
}

// Sizes and special keys as published for the large models (their config.json).
func TestLoadPublishedStyles(t *testing.T) {
	tests := []struct {
		name    string
		model   string
		changes keys
		check   func(*config.Config) bool
	}{
		{"Moonlight: no query compression, one group, plain rope", "tiny-v3", keys{
			"q_lora_rank": nil, "n_group": 1, "topk_group": 1, "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
			"rope_scaling": gone{}, "rope_theta": 50000.0, "routed_scaling_factor": 2.446, "num_nextn_predict_layers": 0,
		}, func(c *config.Config) bool {
			return c.QLoraRank == 0 && c.Rope == nil && c.RopeTheta == 50000 && c.NGroup == 1 && c.RoutedScalingFactor == 2.446
		}},
		{"Kimi-K2: model_type kimi_k2, beta_fast equals beta_slow, fp8", "tiny-v3-fp8", keys{
			"model_type": "kimi_k2", "n_routed_experts": 384, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 8,
			"rope_scaling": keys{"beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"},
		}, func(c *config.Config) bool {
			return c.ModelType == "kimi_k2" && c.Rope.BetaFast == 1 && c.Rope.Factor == 32 && c.Quantization.FP8()
		}},
		{"V3.1: scale_fmt ue8m0", "tiny-v3-fp8", keys{
			"quantization_config": keys{"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": []int{128, 128}},
		}, func(c *config.Config) bool { return c.Quantization.BlockRows == 128 && c.Quantization.BlockCols == 128 }},
		{
			"older Ascend spelling of model_type is a hint", "tiny-v3",
			keys{"model_type": "deepseekv2"},
			func(c *config.Config) bool { return c.Architecture == config.DeepseekV3 && c.ModelType == "deepseekv2" },
		},
		{"rope_parameters instead of rope_scaling and rope_theta", "tiny-v3", keys{
			"rope_scaling": gone{}, "rope_theta": gone{},
			"rope_parameters": keys{"rope_type": "yarn", "rope_theta": 50000, "factor": 8, "original_max_position_embeddings": 128},
		}, func(c *config.Config) bool {
			return c.RopeTheta == 50000 && *c.Rope == config.YaRN{Factor: 8, OriginalMaxPositionEmbeddings: 128, BetaFast: 32, BetaSlow: 1, MScale: 1, MScaleAllDim: 0}
		}},
		{"rope_parameters of the default type", "tiny-v3", keys{
			"rope_scaling": gone{}, "rope_theta": gone{}, "rope_parameters": keys{"rope_type": "default", "rope_theta": 1e6},
		}, func(c *config.Config) bool { return c.RopeTheta == 1e6 && c.Rope == nil }},
		{"rope_type in rope_scaling, no betas and mscales", "tiny-v2lite", keys{
			"rope_scaling": keys{"rope_type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
		}, func(c *config.Config) bool {
			return *c.Rope == config.YaRN{Factor: 40, OriginalMaxPositionEmbeddings: 4096, BetaFast: 32, BetaSlow: 1, MScale: 1, MScaleAllDim: 0}
		}},
		{"both spellings, equal", "tiny-v2lite", keys{
			"rope_scaling": keys{"type": "yarn", "rope_type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
		}, func(c *config.Config) bool { return c.Rope.Factor == 40 }},
		{
			"rope type default", "tiny-v2lite",
			keys{"rope_scaling": keys{"type": "default"}},
			func(c *config.Config) bool { return c.Rope == nil },
		},
		// Defaults of the published DeepseekV2Config.
		{"V2 defaults", "random/rnd-v2-greedy", keys{
			"rope_theta": gone{}, "rope_scaling": gone{}, "rms_norm_eps": gone{}, "n_group": gone{}, "topk_group": gone{}, "first_k_dense_replace": gone{},
			"moe_layer_freq": gone{}, "routed_scaling_factor": gone{}, "scoring_func": gone{}, "topk_method": gone{}, "norm_topk_prob": gone{},
			"n_shared_experts": gone{}, "max_position_embeddings": gone{}, "num_key_value_heads": gone{}, "hidden_act": gone{}, "attention_bias": gone{},
			"tie_word_embeddings": gone{}, "bos_token_id": gone{},
		}, func(c *config.Config) bool {
			return c.RopeTheta == 10000 && c.Rope == nil && c.RMSNormEps == 1e-6 && c.NGroup == 1 && c.TopKGroup == 1 && c.FirstKDenseReplace == 0 &&
				c.RoutedScalingFactor == 1 && c.ScoringFunc == config.Softmax && c.TopKMethod == config.Greedy && !c.NormTopKProb &&
				c.NumSharedExperts == 0 && c.MaxPositionEmbeddings == 2048 && c.BOSTokenID == -1
		}},
		// Defaults of the published DeepseekV3Config, but for num_nextn_predict_layers.
		{"V3 defaults", "tiny-v3", keys{
			"n_group": gone{}, "topk_group": gone{}, "first_k_dense_replace": gone{}, "routed_scaling_factor": gone{}, "scoring_func": gone{},
			"topk_method": gone{}, "norm_topk_prob": gone{}, "n_shared_experts": gone{}, "max_position_embeddings": gone{}, "num_nextn_predict_layers": gone{},
		}, func(c *config.Config) bool {
			return c.NGroup == 8 && c.TopKGroup == 4 && c.FirstKDenseReplace == 3 && c.RoutedScalingFactor == 2.5 && c.ScoringFunc == config.Sigmoid &&
				c.TopKMethod == config.NoAuxTC && c.NormTopKProb && c.NumSharedExperts == 1 && c.MaxPositionEmbeddings == 4096 && c.NumNextNPredictLayers == 0
		}},
		{
			"null groups and shared experts", "tiny-v2lite",
			keys{"n_group": nil, "topk_group": nil, "n_shared_experts": nil, "num_key_value_heads": nil},
			func(c *config.Config) bool { return c.NGroup == 1 && c.TopKGroup == 1 && c.NumSharedExperts == 0 },
		},
		{
			"greedy looks at no groups", "tiny-v2lite",
			keys{"n_group": 4, "topk_group": 2},
			func(c *config.Config) bool { return c.NGroup == 1 && c.TopKGroup == 1 },
		},
		{"training leftovers with any value", "tiny-v3", keys{
			"ep_size": "many", "pretraining_tp": nil, "seq_aux": 3, "aux_loss_alpha": []int{1}, "auto_map": true, "initializer_range": "0.02", "attention_dropout": 0.5,
		}, func(c *config.Config) bool { return c.HiddenSize == 160 }},
		{"unknown keys and harmless values of known ones", "tiny-v3", keys{
			"head_dim": 16, "some_future_key": keys{"a": 1}, "index_topk": nil, "use_qk_norm": false, "sliding_window": nil, "quantization": nil, "quantize": nil,
			"quantization_config": nil, "rope_parameters": nil, "rope_interleave": true, "moe_layer_freq": 1.0,
		}, func(c *config.Config) bool { return !c.Quantization.FP8() }},
		{
			"spellings of a number", "tiny-v2lite",
			keys{"hidden_size": raw("192.0"), "vocab_size": raw("2.048e3"), "num_experts_per_tok": raw("4.0"), "rope_theta": raw("1e4")},
			func(c *config.Config) bool {
				return c.HiddenSize == 192 && c.VocabSize == 2048 && c.NumExpertsPerTok == 4 && c.RopeTheta == 10000
			},
		},
		{
			"architectures null: model_type decides", "tiny-v3",
			keys{"architectures": nil},
			func(c *config.Config) bool { return c.Architecture == config.DeepseekV3 },
		},
		{
			"architectures empty: model_type decides", "tiny-v2lite",
			keys{"architectures": []string{}},
			func(c *config.Config) bool { return c.Architecture == config.DeepseekV2 },
		},
		{
			"architectures missing: kimi_k2", "tiny-v3",
			keys{"architectures": gone{}, "model_type": "kimi_k2"},
			func(c *config.Config) bool { return c.Architecture == config.DeepseekV3 },
		},
		{
			"architectures missing: deepseekv2", "tiny-v2lite",
			keys{"architectures": gone{}, "model_type": "deepseekv2"},
			func(c *config.Config) bool { return c.Architecture == config.DeepseekV2 },
		},
		{
			"model_type is only a hint", "tiny-v3",
			keys{"model_type": "something_else"},
			func(c *config.Config) bool { return c.Architecture == config.DeepseekV3 },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c := mustLoad(t, changed(t, tt.model, tt.changes)); !tt.check(c) {
				t.Errorf("read as %+v, rope %+v", *c, c.Rope)
			}
		})
	}
}

// 40, 40.0 and 4e1 are the same; the string "40" is refused with the key.
func TestNumberForty(t *testing.T) {
	for _, spelling := range []string{"40", "40.0", "4e1", "4.0E+1"} {
		c := mustLoad(t, changed(t, "tiny-v3", keys{"num_hidden_layers": raw(spelling), "rope_scaling": keys{"type": "yarn", "factor": raw(spelling), "original_max_position_embeddings": raw(spelling)}}))
		if c.NumLayers != 40 || c.Rope.Factor != 40 || c.Rope.OriginalMaxPositionEmbeddings != 40 {
			t.Errorf("%s: read as %d layers, rope %+v", spelling, c.NumLayers, *c.Rope)
		}
	}
	err := mustRefuse(t, changed(t, "tiny-v3", keys{"num_hidden_layers": "40", "rope_scaling": keys{"type": "yarn", "factor": "40", "original_max_position_embeddings": 40}}),
		`num_hidden_layers="40": want a whole number`, `rope_scaling.factor="40": want a number`, "config.json")
	if got := faultKeys(t, err); !slices.Equal(got, []string{"num_hidden_layers", "rope_scaling.factor"}) {
		t.Errorf("faults of %q", got)
	}
}

func TestEOS(t *testing.T) {
	tests := []struct {
		name       string
		config     any
		generation string // "": no file
		want       []int32
		warning    string
	}{
		{"int", 1, "", []int32{1}, ""},
		{"list", []int{1, 7, 1}, "", []int32{1, 7}, ""},
		{"generation overrides", 1, `{"eos_token_id": [1, 2046]}`, []int32{1, 2046}, ""},
		{"generation overrides with an int", []int{3, 4}, `{"eos_token_id": 5}`, []int32{5}, ""},
		{"only in generation", gone{}, `{"eos_token_id": 5}`, []int32{5}, ""},
		{"generation has none", 1, `{"temperature": 1}`, []int32{1}, ""},
		{"generation has null", 1, `{"eos_token_id": null}`, []int32{1}, ""},
		{"absent everywhere", gone{}, "", nil, "no usable eos_token_id"},
		{"null and empty", nil, `{"eos_token_id": []}`, nil, "no usable eos_token_id"},
		{"outside the vocabulary", []int{1, 2048}, "", []int32{1}, "eos_token_id 2048 is outside the vocabulary of 2048"},
		{"written as a float", raw("1.0"), "", []int32{1}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := changed(t, "tiny-v3", keys{"eos_token_id": tt.config})
			if tt.generation != "" {
				write(t, filepath.Join(dir, "generation_config.json"), tt.generation)
			}
			c := mustLoad(t, dir)
			if !slices.Equal(c.EOSTokenIDs, tt.want) {
				t.Errorf("EOS ids %v, want %v", c.EOSTokenIDs, tt.want)
			}
			if all := strings.Join(c.Warnings, "\n"); !strings.Contains(all, tt.warning) || (tt.warning == "") != (len(c.Warnings) == 0) {
				t.Errorf("warnings %q, want %q", c.Warnings, tt.warning)
			}
		})
	}
}

func TestGenerationDefaults(t *testing.T) {
	dir := changed(t, "tiny-v3", keys{"bos_token_id": gone{}})
	write(t, filepath.Join(dir, "generation_config.json"), `{"temperature": 0, "top_p": 1, "top_k": -1, "min_p": 0.05, "repetition_penalty": 1.1, "bos_token_id": 3, "do_sample": true}`)
	c := mustLoad(t, dir)
	want := config.Generation{Temperature: ptr(0.0), TopP: ptr(1.0), TopK: ptr(0), MinP: ptr(0.05), RepetitionPenalty: ptr(1.1)}
	if !reflect.DeepEqual(c.Generation, want) {
		t.Errorf("generation defaults %+v", c.Generation)
	}
	if c.BOSTokenID != 3 {
		t.Errorf("BOS id %d, want 3 of generation_config.json", c.BOSTokenID)
	}
	write(t, filepath.Join(dir, "generation_config.json"), `{"temperature": -1, "top_p": 0, "top_k": 2.5, "min_p": "0.1", "eos_token_id": "1"}`)
	err := mustRefuse(t, dir, "generation_config.json", "temperature=-1: want a number from 0", `eos_token_id="1"`)
	if got, want := faultKeys(t, err), []string{"temperature", "top_p", "min_p", "top_k", "eos_token_id"}; !slices.Equal(got, want) {
		t.Errorf("faults of %q, want %q", got, want)
	}
}
