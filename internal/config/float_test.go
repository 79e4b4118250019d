package config

import (
	"math"
	"strings"
	"testing"
)

func TestFloat32(t *testing.T) {
	for text, want := range map[string]float32{
		"0": 0, "-0.00e5": 0, "0x0p9": 0, "0e-400": 0, "0.5": 0.5, "1e-45": math.SmallestNonzeroFloat32, "3.4028235e+38": math.MaxFloat32, "0x1p-149": math.SmallestNonzeroFloat32, "Inf": float32(math.Inf(1)),
	} {
		if got, err := Float32(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"1e39": "is too large: must be at most 3.4028235e+38", "-1e39": "is too large", "1e-46": "is too close to 0: must be 0, or at least 1e-45",
		"-1e-400": "is too close to 0", "0x1p-200": "is too close to 0", "hot": "must be a number", "": "must be a number",
	} {
		if _, err := Float32(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
