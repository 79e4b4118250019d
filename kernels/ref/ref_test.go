package ref

import (
	"math"
	"testing"

	"github.com/moerack/moerack/kernels/kerneltest"
)

func TestConformance(t *testing.T) { kerneltest.Run(t, Table()) }

// TestSmallFloats pins values from the formats' tables: OCP 8-bit floating point, table 1; IEEE 754 binary16.
func TestSmallFloats(t *testing.T) {
	f8 := map[uint8]float32{0x00: 0, 0x01: 0x1p-9, 0x07: 0.875 * 0x1p-6, 0x08: 0x1p-6, 0x38: 1, 0x7e: 448, 0xfe: -448, 0xb8: -1}
	for code, want := range f8 {
		if got := f8e4m3[code]; got != want {
			t.Errorf("F8_E4M3 %#02x = %g, want %g", code, got, want)
		}
	}
	for _, code := range []uint8{0x7f, 0xff} {
		if got := f8e4m3[code]; !math.IsNaN(float64(got)) {
			t.Errorf("F8_E4M3 %#02x = %g, want NaN", code, got)
		}
	}
	if got := f8e4m3[0x80]; got != 0 || !math.Signbit(float64(got)) {
		t.Errorf("F8_E4M3 0x80 = %g, want -0", got)
	}
	f16 := map[uint16]float32{0x0000: 0, 0x0001: 0x1p-24, 0x03ff: 1023 * 0x1p-24, 0x0400: 0x1p-14, 0x3c00: 1, 0x3555: 0.333251953125, 0xc000: -2, 0x7bff: 65504, 0x7c00: float32(math.Inf(1)), 0xfc00: float32(math.Inf(-1))}
	for code, want := range f16 {
		if got := fromF16(code); got != want {
			t.Errorf("F16 %#04x = %g, want %g", code, got, want)
		}
	}
	if got := fromF16(0x7e00); !math.IsNaN(float64(got)) {
		t.Errorf("F16 0x7e00 = %g, want NaN", got)
	}
	if got := fromBF16(0x3fc0); got != 1.5 {
		t.Errorf("BF16 0x3fc0 = %g, want 1.5", got)
	}
}
