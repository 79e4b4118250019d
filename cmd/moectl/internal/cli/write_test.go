package cli

import (
	"bytes"
	"math"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/sample"
)

func TestObjectsHaveAllKeysAndExactNumbers(t *testing.T) {
	lp := sample.Logprobs{Logprob: sample.Logprob{Token: 5, Logprob: -0.1}, Top: []sample.Logprob{{Token: 7, Logprob: -1e-8}, {Token: 5, Logprob: float32(math.Inf(-1))}}}
	for want, a := range map[string]answer{
		`{"index":2,"prompt_token_ids":[],"token_ids":[],"text":"","finish_reason":"error","logprobs":null,"engine":-1,"cached_tokens":0}`: {
			index: 2, finish: actors.FinishError, engine: noEngine,
		},
		`{"index":0,"prompt_token_ids":[1],"token_ids":[],"text":"","finish_reason":"length","logprobs":[],"engine":0,"cached_tokens":0}`: {
			prompt: []int32{1}, wanted: true, finish: actors.FinishLength,
		},
		`{"index":0,"prompt_token_ids":[1],"token_ids":[5],"text":"<a & b>é\n","finish_reason":"stop","logprobs":` +
			`[{"token_id":5,"logprob":-0.1,"top":[{"token_id":7,"logprob":-1e-8},{"token_id":5,"logprob":-3.4028235e+38}]}],"engine":0,"cached_tokens":16}`: {
			prompt: []int32{1}, tokens: []int32{5}, text: "<a & b>é\n", wanted: true, logprobs: []sample.Logprobs{lp}, finish: actors.FinishStop, cached: 16,
		},
	} {
		var out bytes.Buffer
		if err := writeJSON(&out, a.object()); err != nil {
			t.Fatal(err)
		}
		if out.String() != want+"\n" {
			t.Errorf("got  %swant %s", out.String(), want)
		}
	}
}

func TestKernelLines(t *testing.T) {
	kernels := []hal.Kernel{{Op: "Embed", Impl: "ref", Why: "a"}, {Op: "MatMul", Impl: "avx512", Why: "b"}, {Op: "Add", Impl: "ref", Why: "a"}}
	lines := kernelLines(kernels)
	if len(lines) != 2 || lines[0] != "ref: Embed Add (a)" || lines[1] != "avx512: MatMul (b)" {
		t.Errorf("lines %q", lines)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 39: "1.5 TiB", math.MaxInt64: "8192.0 PiB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}
