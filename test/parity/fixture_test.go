package parity_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/test/rig"
)

// fixture is the reference of one model, as test/models/README.md describes it.
type fixture struct {
	Prompts []struct {
		Name           string    `json:"name"`
		IDs            []int32   `json:"ids"`
		LastLogits     string    `json:"last_logits"`
		GreedyIDs      []int32   `json:"greedy_ids"`
		GreedyLogprobs []float64 `json:"greedy_logprobs"`
	} `json:"prompts"`
	Short struct {
		Prompt    int      `json:"prompt"`
		Logits    string   `json:"logits"`
		Hidden    []string `json:"hidden"`
		FinalNorm string   `json:"final_norm"`
		Router    map[int]struct {
			IDs     string `json:"ids"`
			Weights string `json:"weights"`
			Logits  string `json:"logits"`
		} `json:"router"`
	} `json:"short"`

	tensors *weights.Checkpoint
}

// readFixture reads the reference values of a model.
func readFixture(tb testing.TB, model string) *fixture {
	tb.Helper()
	base := filepath.Join(rig.Dir(filepath.Dir(model)), "fixtures", filepath.Base(model))
	data, err := os.ReadFile(base + ".json")
	if err != nil {
		tb.Fatal(err)
	}
	f := &fixture{}
	if err := json.Unmarshal(data, f); err != nil {
		tb.Fatal(err)
	}
	tensors, err := os.ReadFile(base + ".safetensors")
	if err != nil {
		tb.Fatal(err)
	}
	tmp := tb.TempDir() // the reader opens directories
	if err := os.WriteFile(filepath.Join(tmp, "model.safetensors"), tensors, 0o600); err != nil {
		tb.Fatal(err)
	}
	if f.tensors, err = weights.Open(tmp); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { rig.Close(tb, f.tensors) })
	return f
}

func (f *fixture) floats(tb testing.TB, name string) []float32 {
	tb.Helper()
	t, err := f.tensors.Tensor(name, weights.Want{DTypes: []weights.DType{weights.F32}})
	if err != nil {
		tb.Fatal(err)
	}
	v := make([]float32, len(t.Data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return v
}

func (f *fixture) ints(tb testing.TB, name string) []int32 {
	tb.Helper()
	t, err := f.tensors.Tensor(name, weights.Want{DTypes: []weights.DType{weights.I32}})
	if err != nil {
		tb.Fatal(err)
	}
	v := make([]int32, len(t.Data)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return v
}
