package config

const supportedQuantization = `supported: quant_method "fp8" in 128x128 blocks of e4m3, or plain bfloat16/float32 weights`

// fp8Block is the side of the square blocks that share a scale.
const fp8Block = 128

// readQuantization accepts no quantization or the published FP8 block layout.
func (c *Config) readQuantization(d *document) {
	for _, key := range []string{"quantization", "quantize", "compression_config"} {
		if d.has(key) {
			d.fault(key, "quantized weights of another layout, "+supportedQuantization)
		}
	}
	q := d.object("quantization_config")
	if q == nil {
		return
	}
	if !q.has("quant_method") {
		q.fault("quant_method", "missing in quantization_config, "+supportedQuantization)
		return
	}
	if q.values["quant_method"] != "fp8" {
		q.fault("quant_method", "not supported ("+supportedQuantization+")")
		return
	}
	if q.has("fmt") && q.values["fmt"] != "e4m3" {
		q.fault("fmt", `not supported (supported: "e4m3")`)
	}
	if q.has("activation_scheme") && q.values["activation_scheme"] != "dynamic" {
		q.fault("activation_scheme", `not supported (supported: "dynamic")`)
	}
	// ue8m0 rounds scales to powers of two; they are stored as float32 all the same.
	if q.has("scale_fmt") && q.values["scale_fmt"] != "ue8m0" && q.values["scale_fmt"] != "float" {
		q.fault("scale_fmt", `not supported (supported: "float", "ue8m0")`)
	}
	if !q.has("weight_block_size") {
		q.fault("weight_block_size", "missing: FP8 with one scale per tensor is not supported (supported: [128,128])")
		return
	}
	size, _ := q.values["weight_block_size"].([]any)
	for _, side := range size {
		if n, ok := whole(side); !ok || n != fp8Block {
			size = nil
		}
	}
	if len(size) != 2 {
		q.fault("weight_block_size", "not supported (supported: [128,128])")
		return
	}
	c.Quantization = Quantization{BlockRows: fp8Block, BlockCols: fp8Block}
}
