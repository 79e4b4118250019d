package synth

// modelConfig is a config.json with the keys of the published ones.
type modelConfig struct {
	Architectures         []string      `json:"architectures"`
	AttentionBias         bool          `json:"attention_bias"`
	AttentionDropout      float64       `json:"attention_dropout"`
	AuxLossAlpha          float64       `json:"aux_loss_alpha"`
	BOSTokenID            int           `json:"bos_token_id"`
	EOSTokenID            int           `json:"eos_token_id"`
	EPSize                int           `json:"ep_size"`
	FirstKDenseReplace    int           `json:"first_k_dense_replace"`
	HiddenAct             string        `json:"hidden_act"`
	HiddenSize            int           `json:"hidden_size"`
	InitializerRange      float64       `json:"initializer_range"`
	IntermediateSize      int           `json:"intermediate_size"`
	KVLoraRank            int           `json:"kv_lora_rank"`
	MaxPositionEmbeddings int           `json:"max_position_embeddings"`
	ModelType             string        `json:"model_type"`
	MoEIntermediateSize   int           `json:"moe_intermediate_size"`
	MoELayerFreq          int           `json:"moe_layer_freq"`
	NGroup                int           `json:"n_group"`
	NRoutedExperts        int           `json:"n_routed_experts"`
	NSharedExperts        int           `json:"n_shared_experts"`
	NormTopKProb          bool          `json:"norm_topk_prob"`
	NumAttentionHeads     int           `json:"num_attention_heads"`
	NumExpertsPerTok      int           `json:"num_experts_per_tok"`
	NumHiddenLayers       int           `json:"num_hidden_layers"`
	NumKeyValueHeads      int           `json:"num_key_value_heads"`
	NumNextNPredictLayers int           `json:"num_nextn_predict_layers,omitempty"`
	PretrainingTP         int           `json:"pretraining_tp"`
	QLoraRank             *int          `json:"q_lora_rank"` // null: queries are not compressed
	QKNopeHeadDim         int           `json:"qk_nope_head_dim"`
	QKRopeHeadDim         int           `json:"qk_rope_head_dim"`
	QuantizationConfig    *quantization `json:"quantization_config,omitempty"`
	RMSNormEps            float64       `json:"rms_norm_eps"`
	RopeScaling           ropeScaling   `json:"rope_scaling"`
	RopeTheta             float64       `json:"rope_theta"`
	RoutedScalingFactor   float64       `json:"routed_scaling_factor"`
	ScoringFunc           string        `json:"scoring_func"`
	SeqAux                bool          `json:"seq_aux"`
	TieWordEmbeddings     bool          `json:"tie_word_embeddings"`
	TopKGroup             int           `json:"topk_group"`
	TopKMethod            string        `json:"topk_method"`
	TorchDType            string        `json:"torch_dtype"`
	TransformersVersion   string        `json:"transformers_version"`
	UseCache              bool          `json:"use_cache"`
	VHeadDim              int           `json:"v_head_dim"`
	VocabSize             int           `json:"vocab_size"`
}

type quantization struct {
	ActivationScheme string `json:"activation_scheme"`
	Fmt              string `json:"fmt"`
	QuantMethod      string `json:"quant_method"`
	WeightBlockSize  [2]int `json:"weight_block_size"`
}

// block is the side of the square blocks of an FP8 matrix that share a scale.
const block = 128

func fp8Quantization() *quantization {
	return &quantization{ActivationScheme: "dynamic", Fmt: "e4m3", QuantMethod: "fp8", WeightBlockSize: [2]int{block, block}}
}

type ropeScaling struct {
	BetaFast                      int     `json:"beta_fast"`
	BetaSlow                      int     `json:"beta_slow"`
	Factor                        int     `json:"factor"`
	MScale                        float64 `json:"mscale"`
	MScaleAllDim                  float64 `json:"mscale_all_dim"`
	OriginalMaxPositionEmbeddings int     `json:"original_max_position_embeddings"`
	Type                          string  `json:"type"`
}

// generationConfig is a generation_config.json.
type generationConfig struct {
	FromModelConfig     bool   `json:"_from_model_config"`
	BOSTokenID          int    `json:"bos_token_id"`
	EOSTokenID          int    `json:"eos_token_id"`
	TransformersVersion string `json:"transformers_version"`
}

func (c *modelConfig) generation() generationConfig {
	return generationConfig{FromModelConfig: true, BOSTokenID: c.BOSTokenID, EOSTokenID: c.EOSTokenID, TransformersVersion: c.TransformersVersion}
}
