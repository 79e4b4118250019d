package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// checkLayout refuses directories whose weights are in a form that cannot be
// read, by the name of the file that shows it.
func checkLayout(dir string, names []string, r *report) {
	for _, name := range names {
		if path := filepath.Join(dir, name); isQuantizationRecord(name) {
			found := ""
			// Best effort: the name of the file alone is reason to refuse.
			if doc, err := readDocument(path, &report{}); err == nil && doc.has("model_quant_type") {
				found = text(doc.values["model_quant_type"])
			}
			if found != "" {
				r.fault(path, "model_quant_type", found, "quantized weights of another layout, "+supportedQuantization)
			} else {
				r.fault(path, "", "", "describes quantized weights of another layout, "+supportedQuantization)
			}
		}
	}
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".safetensors") }) {
		return
	}
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, ".gguf"):
			r.fault(filepath.Join(dir, name), "", "", "the weights are in GGUF, supported are *.safetensors: get the model in its published safetensors form")
			return
		case isPickle(name):
			r.fault(filepath.Join(dir, name), "", "", "the weights are a Python pickle, supported are *.safetensors: convert the model to safetensors")
			return
		}
	}
}

// isQuantizationRecord knows the files that exporters put beside a config.json
// which itself may look unquantized: msModelSlim, ModelOpt, AutoGPTQ, AutoAWQ.
func isQuantizationRecord(name string) bool {
	described, _ := filepath.Match("quant_model_description*.json", name)
	return described || name == "hf_quant_config.json" || name == "quantize_config.json" || name == "quant_config.json"
}

func isPickle(name string) bool {
	switch filepath.Ext(name) {
	case ".pt", ".pth", ".ckpt":
		return true
	case ".bin":
		return strings.HasPrefix(name, "pytorch_model")
	}
	return false
}
