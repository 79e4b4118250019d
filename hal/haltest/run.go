package haltest

import (
	"testing"

	"github.com/moerack/moerack/hal"
)

// tol bounds the error of a float32 backend on the suite's small sums.
const tol = 1e-5

// Run tests the backend whose devices open returns. Each subtest opens and closes a device of its own.
func Run(t *testing.T, open func() (hal.Device, error)) {
	for _, c := range []struct {
		name string
		f    func(*rig)
	}{
		{"Describe", testDescribe},
		{"Memory", testMemory},
		{"Import", testImport},
		{"StickyErrors", testStickyErrors},
		{"Lifetime", testLifetime},
		{"Unwanted", testUnwanted},
		{"Embed", testEmbed},
		{"RMSNorm", testRMSNorm},
		{"AddRMSNorm", testAddRMSNorm},
		{"MatMul", testMatMul},
		{"FP8Blocks", testFP8Blocks},
		{"Slices", testSlices},
		{"Reducer", testReducer},
		{"MLAExpanded", testExpanded},
		{"Int8", testInt8},
		{"Int8Rounds", testInt8Rounds},
		{"Int8Slices", testInt8Slices},
		{"Int8Faults", testInt8Faults},
		{"HeadMatMul", testHeadMatMul},
		{"Rope", testRope},
		{"KVAndAttention", testAttention},
		{"Route", testRoute},
		{"Experts", testExperts},
		{"PartialDispatch", testPartialDispatch},
		{"MissingTerms", testMissingTerms},
		{"Rows", testRows},
		{"WrongShapes", testWrongShapes},
		{"WrongIndices", testWrongIndices},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(newRig(t, open)) })
	}
	t.Run("ForeignBuffer", func(t *testing.T) { testForeign(newRig(t, open), newRig(t, open)) })
	t.Run("Comm", func(t *testing.T) { testComm(t, open) })
}
