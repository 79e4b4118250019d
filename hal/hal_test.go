package hal_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/moerack/moerack/hal"
)

func TestErrorSaysAllAndKeepsItsClass(t *testing.T) {
	e := &hal.Error{Op: "MatMul", Device: "npu:3", Class: hal.DeviceLost, Code: 507011, Detail: "the device does not answer", Err: io.ErrUnexpectedEOF}
	wrapped := fmt.Errorf("rank 3: layer 7: %w", e)
	want := "rank 3: layer 7: npu:3: MatMul: the device does not answer: unexpected EOF (code 507011) [device lost]"
	if wrapped.Error() != want {
		t.Errorf("got  %s\nwant %s", wrapped, want)
	}
	if hal.ClassOf(wrapped) != hal.DeviceLost || !errors.Is(wrapped, io.ErrUnexpectedEOF) {
		t.Errorf("class %v, cause lost: %v", hal.ClassOf(wrapped), !errors.Is(wrapped, io.ErrUnexpectedEOF))
	}
	if hal.ClassOf(io.EOF) != 0 || hal.ClassOf(nil) != 0 {
		t.Error("an error of nobody's has a class")
	}
}

func TestViews(t *testing.T) {
	x := hal.Tensor{DType: hal.F32, Rows: 6, Cols: 10, Stride: 12, Offset: 5}
	got := x.Slice(2, 4).Columns(3, 8)
	want := hal.Tensor{DType: hal.F32, Rows: 2, Cols: 5, Stride: 12, Offset: 5 + 2*12 + 3}
	if got != want {
		t.Errorf("rows 2, 3 and columns 3 … 7: %+v, want %+v", got, want)
	}
}

func TestDTypes(t *testing.T) {
	for d, want := range map[hal.DType]string{hal.F32: "F32 4", hal.BF16: "BF16 2", hal.F16: "F16 2", hal.F8E4M3: "F8_E4M3 1", hal.I32: "I32 4", 0: "DType(0) 0", 99: "DType(99) 0"} {
		if got := fmt.Sprint(d, d.Size()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRouterValidate(t *testing.T) {
	good := hal.Router{Scoring: hal.Sigmoid, Method: hal.NoAuxTC, Groups: 4, TopGroups: 2, Scale: 1}
	if err := good.Validate(16, 8); err != nil {
		t.Errorf("good router: %v", err)
	}
	for want, r := range map[string]struct {
		change  func(*hal.Router)
		experts int
		picks   int
	}{
		"0 picks of 16":                {func(*hal.Router) {}, 16, 0},
		"17 picks of 16":               {func(*hal.Router) {}, 16, 17},
		"unknown scoring function":     {func(r *hal.Router) { r.Scoring = 0 }, 16, 4},
		"unknown top-k method":         {func(r *hal.Router) { r.Method = 0 }, 16, 4},
		"4 groups must divide 18":      {func(*hal.Router) {}, 18, 4},
		"5 chosen groups of 4":         {func(r *hal.Router) { r.TopGroups = 5 }, 16, 4},
		"9 picks of 2 groups with 4":   {func(*hal.Router) {}, 16, 9},
		"groups of at least 2 experts": {func(*hal.Router) {}, 4, 2},
	} {
		router := good
		r.change(&router)
		if err := router.Validate(r.experts, r.picks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}
