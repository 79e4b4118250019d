package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/moerack/moerack/internal/config"
)

// Every setting is a flag of generate, with a help text, and shows its default.
func TestEverySettingIsAFlag(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(host(&out, &errs, "generate", "--help")); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	for _, key := range config.Keys() {
		if usages[key.Name] == "" {
			t.Errorf("%s has no help text", key.Name)
		}
		line := ""
		for l := range strings.Lines(out.String()) {
			if strings.HasPrefix(strings.TrimSpace(l), "--"+key.Flag()+" ") {
				line = l
			}
		}
		if line == "" {
			t.Errorf("generate has no flag --%s", key.Flag())
		}
		if d := key.Default(); d != "" && d != "0" && !strings.Contains(line, "(default "+d+")") {
			t.Errorf("--%s does not show its default %s: %q", key.Flag(), d, line)
		}
	}
	if len(usages) != len(config.Keys()) {
		t.Errorf("%d help texts for %d settings", len(usages), len(config.Keys()))
	}
}

// The limits of model/sample count for settings as well, under the names that the user wrote, with all other faults.
func TestSamplingLimits(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"temperature", "-0.5", "--temperature=-0.5: must be a finite number ≥ 0 (0 is greedy)"},
		{"temperature", "NaN", "--temperature=NaN: must be a finite number"},
		{"temperature", "Inf", "--temperature=+Inf: must be a finite number"},
		{"temperature", "1e39", `--temperature="1e39": is too large: must be at most 3.4028235e+38`},
		{"temperature", "1e-46", `--temperature="1e-46": is too close to 0: must be 0, or at least 1e-45`},
		{"top-p", "0", "--top-p=0: must be above 0 and at most 1"},
		{"top-p", "1.5", "--top-p=1.5: must be above 0 and at most 1"},
		{"top-k", "-2", "--top-k=-2: must be ≥ 1, or 0 or -1"},
	} {
		var out, errs bytes.Buffer
		h := host(&out, &errs, "generate", "--model", "m", "--prompt", "a", "--"+c.flag, c.value, "--block-size", "0")
		h.Environ = []string{"MOE_MAX_TOKENS=-1"}
		if code := Run(h); code != exitUsage {
			t.Errorf("%s %s: exit code %d", c.flag, c.value, code)
		}
		for _, want := range []string{c.want, "--block-size=0: ", "MOE_MAX_TOKENS=-1: "} {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s %s: no %q in\n%s", c.flag, c.value, want, &errs)
			}
		}
	}
}

func TestRepeatedFlags(t *testing.T) {
	var out, errs bytes.Buffer
	// The last of a single value counts; all of a list do, the empty one is the fault.
	code := Run(host(&out, &errs, "generate", "--model", "m", "--prompt", "a", "--max-tokens", "x", "--max-tokens=-7", "--stop", "a", "--stop", ""))
	if code != exitUsage || !strings.Contains(errs.String(), "--max-tokens=-7: ") || !strings.Contains(errs.String(), `--stop="": must not be empty`) || strings.Contains(errs.String(), `"x"`) {
		t.Errorf("exit code %d:\n%s", code, &errs)
	}
}
