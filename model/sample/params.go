package sample

import (
	"fmt"
	"math"
)

// NoLogprobs in Params.Logprobs asks for none.
const NoLogprobs = -1

// Params say how tokens are chosen. Greedy without log-probabilities is Params{TopP: 1, Logprobs: NoLogprobs}.
type Params struct {
	Temperature float32 // ≥ 0; 0 is greedy; else logits are divided by it
	TopP        float32 // 0 < TopP ≤ 1: keep the smallest set of best tokens whose probabilities reach it; 1 keeps all
	TopK        int     // keep the K best tokens; 0 and −1 keep all
	Seed        uint64  // with the position of the token, the key of its random number
	Logprobs    int     // −1: none; K ≥ 0: of the chosen token and the K best
}

// Validate returns all faults of p for a vocabulary of vocab tokens, each with the legal values; none if p can be used.
func (p Params) Validate(vocab int) []error {
	var faults []error
	if t := float64(p.Temperature); !(t >= 0) || math.IsInf(t, 0) {
		faults = append(faults, fmt.Errorf("temperature=%v: must be a finite number ≥ 0 (0 is greedy)", p.Temperature))
	}
	if !(p.TopP > 0 && p.TopP <= 1) {
		faults = append(faults, fmt.Errorf("top_p=%v: must be above 0 and at most 1 (1 keeps all tokens)", p.TopP))
	}
	if p.TopK < -1 {
		faults = append(faults, fmt.Errorf("top_k=%d: must be ≥ 1, or 0 or -1 to keep all tokens", p.TopK))
	}
	if p.Logprobs < NoLogprobs || p.Logprobs > vocab {
		faults = append(faults, fmt.Errorf("logprobs=%d: must be 0 … %d (the vocabulary), or -1 for none", p.Logprobs, vocab))
	}
	return faults
}

// Logprob is a token and the natural logarithm of its probability under the softmax of the raw logits, before temperature
// and truncation.
type Logprob struct {
	Token   int32
	Logprob float32
}

// Logprobs are the chosen token's and the best tokens', most probable first, ties by the lower id.
type Logprobs struct {
	Logprob
	Top []Logprob // exactly Params.Logprobs entries, fewer only if the vocabulary has fewer
}
