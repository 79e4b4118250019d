package synth

// Shape is the sizes of a network.
type Shape struct {
	Name  string
	About string // one line for people
	DType DType  // in which the model of this shape is published

	config modelConfig
}

// Layers returns the number of decoder layers, MTP modules not counted.
func (s Shape) Layers() int { return s.config.NumHiddenLayers }

// DenseLayers returns how many of the first layers have no experts.
func (s Shape) DenseLayers() int { return s.config.FirstKDenseReplace }

// Vocab returns the number of tokens.
func (s Shape) Vocab() int { return s.config.VocabSize }

// Shapes returns the shapes there are. The caller may change the list.
func Shapes() []Shape {
	v2lite4l, v3slim := v2Lite(), v3()
	v2lite4l.NumHiddenLayers = 4
	v3slim.NumHiddenLayers, v3slim.FirstKDenseReplace, v3slim.NRoutedExperts, v3slim.NumNextNPredictLayers = 3, 1, 32, 0
	return []Shape{
		{"v2lite", "DeepSeek-V2-Lite: 27 layers, 64 experts", BFloat16, v2Lite()},
		{"v2lite-4l", "DeepSeek-V2-Lite's widths, 1 dense and 3 MoE layers", BFloat16, v2lite4l},
		{"v2", "DeepSeek-V2: 60 layers, 160 experts", BFloat16, v2()},
		{"v3", "DeepSeek-V3: 61 layers, 256 experts, an MTP module", FP8, v3()},
		{"v3-slim", "DeepSeek-V3's widths, 1 dense and 2 MoE layers of 32 experts, no MTP module", FP8, v3slim},
		{"tiny-v2lite", "V2-Lite's structure: hidden 192, 4 layers, 16 experts, vocabulary 2048", BFloat16, tinyV2Lite()},
		{"tiny-v3", "V3's structure: hidden 160, 4 layers, 16 experts, vocabulary 2048, an MTP module", BFloat16, tinyV3()},
	}
}

// Named returns the shape of that name.
func Named(name string) (Shape, bool) {
	for _, s := range Shapes() {
		if s.Name == name {
			return s, true
		}
	}
	return Shape{}, false
}

// published holds what the published configurations have in common.
func published() modelConfig {
	return modelConfig{
		AuxLossAlpha: 0.001, EPSize: 1, FirstKDenseReplace: 1, HiddenAct: "silu", InitializerRange: 0.02, KVLoraRank: 512,
		MaxPositionEmbeddings: 163840, MoELayerFreq: 1, PretrainingTP: 1, QKNopeHeadDim: 128, QKRopeHeadDim: 64, RMSNormEps: 1e-6,
		RopeScaling: ropeScaling{BetaFast: 32, BetaSlow: 1, Factor: 40, MScale: 0.707, MScaleAllDim: 0.707, OriginalMaxPositionEmbeddings: 4096, Type: "yarn"},
		RopeTheta:   10000, SeqAux: true, TransformersVersion: "4.33.1", UseCache: true, VHeadDim: 128,
	}
}

func v2Lite() modelConfig {
	c := published()
	c.Architectures, c.ModelType = []string{"DeepseekV2ForCausalLM"}, "deepseek_v2"
	c.BOSTokenID, c.EOSTokenID, c.VocabSize = 100000, 100001, 102400
	c.HiddenSize, c.NumHiddenLayers, c.NumAttentionHeads, c.NumKeyValueHeads = 2048, 27, 16, 16
	c.IntermediateSize, c.MoEIntermediateSize = 10944, 1408
	c.NRoutedExperts, c.NSharedExperts, c.NumExpertsPerTok, c.NGroup, c.TopKGroup = 64, 2, 6, 1, 1
	c.ScoringFunc, c.TopKMethod, c.RoutedScalingFactor = "softmax", "greedy", 1
	return c
}

func v2() modelConfig {
	c := v2Lite()
	c.HiddenSize, c.NumHiddenLayers, c.NumAttentionHeads, c.NumKeyValueHeads, c.QLoraRank = 5120, 60, 128, 128, new(1536)
	c.IntermediateSize, c.MoEIntermediateSize = 12288, 1536
	c.NRoutedExperts, c.NGroup, c.TopKGroup = 160, 8, 3
	c.TopKMethod, c.RoutedScalingFactor = "group_limited_greedy", 16
	return c
}

func v3() modelConfig {
	c := published()
	c.Architectures, c.ModelType = []string{"DeepseekV3ForCausalLM"}, "deepseek_v3"
	c.BOSTokenID, c.EOSTokenID, c.VocabSize = 0, 1, 129280
	c.HiddenSize, c.NumHiddenLayers, c.NumAttentionHeads, c.NumKeyValueHeads, c.QLoraRank = 7168, 61, 128, 128, new(1536)
	c.IntermediateSize, c.MoEIntermediateSize, c.FirstKDenseReplace, c.NumNextNPredictLayers = 18432, 2048, 3, 1
	c.NRoutedExperts, c.NSharedExperts, c.NumExpertsPerTok, c.NGroup, c.TopKGroup = 256, 1, 8, 8, 4
	c.ScoringFunc, c.TopKMethod, c.RoutedScalingFactor, c.NormTopKProb = "sigmoid", "noaux_tc", 2.5, true
	c.RopeScaling.MScale, c.RopeScaling.MScaleAllDim = 1, 1
	return c
}

func tinyV2Lite() modelConfig {
	c := v2Lite()
	tiny(&c)
	c.HiddenSize, c.NumAttentionHeads, c.NumKeyValueHeads, c.IntermediateSize = 192, 6, 6, 384
	return c
}

func tinyV3() modelConfig {
	c := v3()
	tiny(&c)
	c.HiddenSize, c.NumAttentionHeads, c.NumKeyValueHeads, c.IntermediateSize, c.QLoraRank = 160, 5, 5, 320, new(96)
	c.FirstKDenseReplace, c.NGroup, c.TopKGroup = 1, 4, 2
	return c
}

// tiny sets what the two small shapes have in common.
func tiny(c *modelConfig) {
	c.BOSTokenID, c.EOSTokenID, c.VocabSize = 0, 1, 2048
	c.NumHiddenLayers, c.MoEIntermediateSize, c.NRoutedExperts, c.NumExpertsPerTok = 4, 64, 16, 4
	c.KVLoraRank, c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim = 64, 32, 16, 32
	c.MaxPositionEmbeddings, c.RopeScaling.Factor, c.RopeScaling.OriginalMaxPositionEmbeddings = 1024, 4, 256
}
