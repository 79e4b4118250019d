package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// readRope reads the rotary embedding from rope_theta and rope_scaling, or from
// rope_parameters, which newer files have in place of both.
func (c *Config) readRope(d *document) {
	scaling, parameters := d.object("rope_scaling"), d.object("rope_parameters")
	const thetaKey, thetaWant = "rope_theta", "a number above 1"
	above1 := func(f float64) bool { return f > 1 }
	c.RopeTheta = d.numberOr(thetaKey, 10000, above1, thetaWant)
	if parameters != nil && parameters.has(thetaKey) {
		theta := parameters.number(thetaKey, above1, thetaWant)
		if d.has(thetaKey) && theta != c.RopeTheta {
			parameters.fault(thetaKey, fmt.Sprintf("contradicts rope_theta=%v", c.RopeTheta))
		}
		c.RopeTheta = theta
	}
	switch {
	case scaling != nil && parameters != nil:
		c.Rope = readYaRN(scaling)
		if other := readYaRN(parameters); !reflect.DeepEqual(c.Rope, other) {
			d.fault("rope_parameters", "contradicts rope_scaling, keep one of them")
		}
	case scaling != nil:
		c.Rope = readYaRN(scaling)
	case parameters != nil:
		c.Rope = readYaRN(parameters)
	}
}

// readYaRN gives nil for the default rotary embedding. Absent keys have the
// defaults of the published rotary embedding class.
func readYaRN(d *document) *YaRN {
	kind := "default"
	for _, key := range []string{"type", "rope_type"} {
		if !d.has(key) {
			continue
		}
		name, _ := d.values[key].(string)
		if name != "yarn" && name != "default" {
			d.fault(key, "not supported (supported: default, yarn)")
			return nil
		}
		if key == "rope_type" && d.has("type") && name != kind {
			d.fault(key, fmt.Sprintf("contradicts type=%q", kind))
			return nil
		}
		kind = name
	}
	if kind == "default" {
		if !d.has("type") && !d.has("rope_type") && d.has("factor") {
			d.fault("type", "missing beside factor (supported: default, yarn)")
		}
		for _, key := range slices.Sorted(maps.Keys(d.values)) {
			if _, nested := d.values[key].(map[string]any); nested {
				d.fault(key, "not supported: want one set of parameters for all layers")
			}
		}
		return nil
	}
	if d.has("attention_factor") {
		d.fault("attention_factor", "not supported, must be absent (mscale and mscale_all_dim scale attention)")
	}
	if truncate, ok := d.values["truncate"].(bool); ok && !truncate {
		d.fault("truncate", "not supported, must be absent or true")
	}
	y := &YaRN{
		Factor: d.number("factor", func(f float64) bool { return f >= 1 }, "a number from 1"),
		// Implementations disagree on its default, so it has none here.
		OriginalMaxPositionEmbeddings: d.integer("original_max_position_embeddings", 1, maxPositions),
		BetaFast:                      d.numberOr("beta_fast", 32, positive, "a number above 0"),
		BetaSlow:                      d.numberOr("beta_slow", 1, positive, "a number above 0"),
		MScale:                        d.numberOr("mscale", 1, nonNegative, "a number from 0"),
		MScaleAllDim:                  d.numberOr("mscale_all_dim", 0, nonNegative, "a number from 0"),
	}
	if y.BetaFast < y.BetaSlow {
		d.fault("beta_fast", fmt.Sprintf("must be at least beta_slow=%v", y.BetaSlow))
	}
	return y
}
