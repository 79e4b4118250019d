package config

// Architecture is the network's name as architectures[0] of config.json spells it.
type Architecture string

// The architectures that can be loaded.
const (
	DeepseekV2 Architecture = "DeepseekV2ForCausalLM"
	DeepseekV3 Architecture = "DeepseekV3ForCausalLM"
)

// ScoringFunc turns router logits into scores.
type ScoringFunc string

// The scoring functions: softmax over all routed experts (V2), sigmoid of each (V3).
const (
	Softmax ScoringFunc = "softmax"
	Sigmoid ScoringFunc = "sigmoid"
)

// TopKMethod is how the experts of a token are chosen from their scores.
type TopKMethod string

// The ways to choose experts.
const (
	// Greedy takes the best NumExpertsPerTok of all.
	Greedy TopKMethod = "greedy"
	// GroupLimitedGreedy takes them from the TopKGroup groups with the best single score.
	GroupLimitedGreedy TopKMethod = "group_limited_greedy"
	// NoAuxTC adds the correction bias for the choice (not for the weight) and
	// takes them from the TopKGroup groups with the best sum of two scores.
	NoAuxTC TopKMethod = "noaux_tc"
)

// Config is a checked model configuration. It is a value to read; nobody writes
// to it after Load, so it may be shared.
type Config struct {
	Architecture Architecture
	ModelType    string // model_type as written, a hint only; "" when absent

	HiddenSize            int
	NumLayers             int // num_hidden_layers, without MTP modules
	VocabSize             int
	MaxPositionEmbeddings int // tokens
	RMSNormEps            float64

	// Attention (MLA).
	NumHeads      int
	QLoraRank     int // 0: queries are not compressed
	KVLoraRank    int
	QKNopeHeadDim int
	QKRopeHeadDim int // even
	VHeadDim      int
	RopeTheta     float64
	Rope          *YaRN // nil: plain rotary embedding

	// Feed-forward.
	IntermediateSize    int // width of a dense layer
	MoEIntermediateSize int // width of one expert
	NumRoutedExperts    int
	NumSharedExperts    int // 0: none
	NumExpertsPerTok    int
	FirstKDenseReplace  int // layers 0..k-1 are dense
	ScoringFunc         ScoringFunc
	TopKMethod          TopKMethod
	NGroup              int // 1 for Greedy
	TopKGroup           int // 1 for Greedy
	NormTopKProb        bool
	RoutedScalingFactor float64

	NumNextNPredictLayers int // MTP modules in the checkpoint; 0: none named

	Quantization Quantization

	// EOSTokenIDs end a request; those of generation_config.json replace those
	// of config.json. Empty: nothing but length and stop strings ends it.
	EOSTokenIDs []int32
	BOSTokenID  int32 // -1: none

	Generation Generation

	// Warnings are complete sentences for the user, in the order found.
	Warnings []string
}

// YaRN holds the parameters of rotary embedding scaled by the YaRN method.
type YaRN struct {
	Factor                        float64
	OriginalMaxPositionEmbeddings int // tokens
	BetaFast                      float64
	BetaSlow                      float64
	MScale                        float64
	MScaleAllDim                  float64
}

// Quantization says how linear weights are stored. The zero value: as plain
// floating-point numbers.
type Quantization struct {
	// Above 0: FP8 (E4M3), each block of so many weights with one float32 scale.
	BlockRows int
	BlockCols int
	// W8A8: int8, each row with one float32 scale, and the up-projection of the
	// latent in two tensors (package weights has the layout).
	W8A8 bool
}

// FP8 reports whether linear weights are stored as scaled FP8 blocks.
func (q Quantization) FP8() bool { return q.BlockRows > 0 }

// Generation holds the sampling defaults of generation_config.json; nil: the file
// says nothing. Whether they count is the caller's choice.
type Generation struct {
	Temperature       *float64 // >= 0
	TopP              *float64 // in (0, 1]
	TopK              *int     // 0: off
	MinP              *float64 // in [0, 1]
	RepetitionPenalty *float64 // > 0
}

// QKHeadDim is the width of one head's query and key: the part without and the
// part with rotary embedding.
func (c *Config) QKHeadDim() int { return c.QKNopeHeadDim + c.QKRopeHeadDim }

// IsMoE reports whether a layer (0-based) has experts; the others are dense.
func (c *Config) IsMoE(layer int) bool { return layer >= c.FirstKDenseReplace }
