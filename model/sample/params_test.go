package sample

import (
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	good := Params{TopP: 1, Logprobs: NoLogprobs}
	with := func(change func(*Params)) Params {
		p := good
		change(&p)
		return p
	}
	for _, tt := range []struct {
		name string
		p    Params
		want []string // in each fault, in order
	}{
		{"greedy", good, nil},
		{"all at their ends", Params{Temperature: math.MaxFloat32, TopP: math.SmallestNonzeroFloat32, TopK: -1, Logprobs: 100}, nil},
		{"negative temperature", with(func(p *Params) { p.Temperature = -0.5 }), []string{"temperature=-0.5"}},
		{"infinite temperature", with(func(p *Params) { p.Temperature = float32(math.Inf(1)) }), []string{"temperature=+Inf"}},
		{"no number", with(func(p *Params) { p.Temperature = float32(math.NaN()) }), []string{"temperature=NaN"}},
		{"top_p 0", with(func(p *Params) { p.TopP = 0 }), []string{"top_p=0"}},
		{"top_p NaN", with(func(p *Params) { p.TopP = float32(math.NaN()) }), []string{"top_p=NaN"}},
		{"top_p above 1", with(func(p *Params) { p.TopP = 1.5 }), []string{"top_p=1.5: must be above 0 and at most 1"}},
		{"top_k below", with(func(p *Params) { p.TopK = -2 }), []string{"top_k=-2"}},
		{"logprobs beyond the vocabulary", with(func(p *Params) { p.Logprobs = 101 }), []string{"logprobs=101: must be 0 … 100"}},
		{"all at once", Params{Temperature: -1, TopP: 2, TopK: -9, Logprobs: -2}, []string{"temperature", "top_p", "top_k", "logprobs"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.p.Validate(100)
			if len(got) != len(tt.want) {
				t.Fatalf("faults %v, want %d", got, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i].Error(), want) {
					t.Errorf("fault %q, want it to name %q", got[i], want)
				}
			}
		})
	}
}
