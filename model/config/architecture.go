package config

import "fmt"

// byModelType serves files without architectures. "deepseekv2" is how older
// Ascend tools spell deepseek_v2.
var byModelType = map[string]Architecture{
	"deepseek_v2": DeepseekV2,
	"deepseekv2":  DeepseekV2,
	"deepseek_v3": DeepseekV3,
	"kimi_k2":     DeepseekV3,
}

// architectures lists the architectures that Load accepts.
func architectures() []Architecture { return []Architecture{DeepseekV2, DeepseekV3} }

// architecture dispatches on architectures[0] by exact name, without it on
// model_type. On a fault ok is false, and no other key means anything.
func (d *document) architecture() (a Architecture, modelType string, ok bool) {
	if d.has("model_type") {
		if modelType, ok = d.values["model_type"].(string); !ok {
			d.fault("model_type", "want a string")
			return "", "", false
		}
	}
	supported := fmt.Sprintf("supported architectures: %s, %s", DeepseekV2, DeepseekV3)
	if d.has("architectures") {
		list, ok := d.values["architectures"].([]any)
		if !ok {
			d.fault("architectures", "want a list with one name ("+supported+")")
			return "", modelType, false
		}
		if len(list) > 0 {
			name, _ := list[0].(string)
			for _, a := range architectures() {
				if name == string(a) {
					return a, modelType, true
				}
			}
			d.report.fault(d.path, "architectures[0]", text(list[0]), "not supported ("+supported+")")
			return "", modelType, false
		}
	}
	if a, ok := byModelType[modelType]; ok {
		return a, modelType, true
	}
	const types = "; without architectures model_type must be deepseek_v2, deepseek_v3 or kimi_k2"
	if modelType == "" {
		d.fault("architectures", "missing, and there is no model_type ("+supported+types+")")
	} else {
		d.fault("model_type", "not supported, and architectures is missing ("+supported+types+")")
	}
	return "", modelType, false
}
