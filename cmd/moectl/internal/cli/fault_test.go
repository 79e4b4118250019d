package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/hal/faulty"
)

// TestRankFails: a rank that fails, hangs or dies in the middle of a step ends the command with an error that names it, the step, the
// layer and the operation, and the command does not wait for one that hangs.
func TestRankFails(t *testing.T) {
	for _, f := range []struct {
		name, op string
		n        int // which of the rank's calls
		do       faulty.Action
		want     string // of the error
	}{
		{"fails", "MatMul", 14, faulty.Fail(hal.DeviceLost, 5), `rank 1 on node local: step 2: layer 2: attention: cpu:1: MatMul: .*code 5`},
		{"hangs", "MatMul", 14, faulty.Hang(), `rank 1 on node local: step 2: layer 2: attention: no progress for `},
		{"dies", "MLAAttention", 3, faulty.Die(), `rank 1 on node local: step 2: layer 2: attention: .*died as told`},
		{"hangs in a collective", "AllGather", 1, faulty.Hang(), `rank 1 on node local: step 2: layer 1: a2e: no progress for `},
	} {
		t.Run(f.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			var in faulty.Injector
			in.Add(faulty.Rule{Device: "cpu:1", Op: f.op, N: f.n, Do: f.do})
			var out, errs bytes.Buffer
			h := host(&out, &errs, "generate", "--model", "../../../../test/models/random/rnd-v3-yarn", "--prompt-ids", "5,6,7", "--prompt-ids", "8", "-o", "json",
				"--data-parallel-size", "2", "--enable-expert-parallel", "--stall-timeout", "300ms", "--max-tokens", "20", "--ignore-eos")
			h.Backends = []Backend{{Name: "cpu", Open: func(index int, c Compute) (hal.Device, error) {
				dev, err := cpu.Open(cpu.Options{Index: index, Threads: c.Threads, Off: c.KernelsOff})
				if err != nil {
					return nil, err
				}
				return faulty.Wrap(dev, &in), nil
			}}}
			if code := Run(h); code != exitFailure {
				t.Errorf("exit code %d, want 1", code)
			}
			if !regexp.MustCompile(f.want).Match(errs.Bytes()) {
				t.Errorf("standard error has no %s:\n%s", f.want, &errs)
			}
			if n := strings.Count(errs.String(), "moectl: prompt "); n != 1 || !strings.Contains(errs.String(), "moectl: 2 requests in all ended as prompt 0 (--prompt-ids) did\n") {
				t.Errorf("standard error has the cause %d times, want it once with the number of requests:\n%s", n, &errs)
			}
			if !strings.Contains(errs.String(), `devices="cpu:0 cpu:1"`) {
				t.Errorf("standard error does not name both devices:\n%s", &errs)
			}
			if n := strings.Count(out.String(), `"finish_reason":"error"`); n != 2 {
				t.Errorf("%d answers end with an error, want 2:\n%s", n, &out)
			}
			in.Release()
			goleak.VerifyNone(t, before)
		})
	}
}
