package config

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const supportedQuantization = `supported: quant_method "fp8" in 128x128 blocks of e4m3, "moerack_w8a8", which moectl quantize writes, or plain bfloat16/float32 weights`

// fp8Block is the side of the square blocks that share a scale.
const fp8Block = 128

// The int8 layout that moectl quantize writes.
const (
	w8a8Method  = "moerack_w8a8"
	w8a8Version = 1
)

// readQuantization accepts no quantization, the published FP8 block layout, or our own of int8.
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
	if q.values["quant_method"] == w8a8Method {
		if n, ok := whole(q.values["version"]); !ok || n != w8a8Version {
			q.fault("version", fmt.Sprintf("not supported (supported: %d): quantize the model again with this version of moectl", w8a8Version))
		}
		c.Quantization = Quantization{W8A8: true}
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

// ToW8A8 returns the config.json of the same model with int8 weights: all keys as they are, but for those that say how numbers are
// stored, and without MTP modules, which are not quantized.
func ToW8A8(document []byte) ([]byte, error) {
	var keys map[string]json.RawMessage
	if err := checkJSON(document); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if err := json.Unmarshal(document, &keys); err != nil || keys == nil {
		return nil, fmt.Errorf("config: holds %s, want a JSON object with the model's keys", describeJSON(document))
	}
	set := func(key string, value any) error {
		text, err := json.Marshal(value)
		keys[key] = text
		return err
	}
	err := set("quantization_config", map[string]any{
		"quant_method": w8a8Method, "version": w8a8Version, "weights": "int8, symmetric, a float32 scale for each output", "activations": "int8, symmetric, a scale for each token",
	})
	if _, ok := keys["num_nextn_predict_layers"]; ok && err == nil {
		err = set("num_nextn_predict_layers", 0)
	}
	for _, key := range []string{"torch_dtype", "dtype"} {
		if _, ok := keys[key]; ok && err == nil {
			err = set(key, "bfloat16")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(keys); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return text.Bytes(), nil
}
