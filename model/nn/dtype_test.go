package nn_test

import (
	"strings"
	"testing"

	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
)

func TestDTypeForm(t *testing.T) {
	plain, fp8, own := config.Quantization{}, config.Quantization{BlockRows: 128, BlockCols: 128}, config.Quantization{W8A8: true}
	for _, tt := range []struct {
		dtype nn.DType
		model config.Quantization
		form  weights.Form
		fault string
	}{
		{nn.Auto, plain, weights.Stored, ""},
		{nn.Auto, fp8, weights.Stored, ""},
		{nn.Auto, own, weights.Stored, ""},
		{nn.Float32, fp8, weights.Stored, ""},
		{nn.Float32, own, 0, "dtype=float32: the model's weights are int8: run it with auto or w8a8"},
		{nn.BFloat16, plain, weights.BFloat16, ""},
		{nn.BFloat16, own, 0, "dtype=bfloat16: the model's weights are int8"},
		{nn.W8A8, fp8, weights.Int8, ""},
		{nn.W8A8, own, weights.Int8, ""},
		{"float16", plain, 0, `dtype="float16": must be auto or float32 or bfloat16 or w8a8`},
		{"", plain, 0, `dtype="": must be`},
	} {
		form, err := tt.dtype.Form(&config.Config{Quantization: tt.model})
		if form != tt.form || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%q of %+v: %v, %v", tt.dtype, tt.model, form, err)
		}
	}
}
