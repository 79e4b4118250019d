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

func TestRepeatedFlags(t *testing.T) {
	var out, errs bytes.Buffer
	// The last of a single value counts; all of a list do, the empty one is the fault.
	code := Run(host(&out, &errs, "generate", "--model", "m", "--prompt", "a", "--max-tokens", "x", "--max-tokens=-7", "--stop", "a", "--stop", ""))
	if code != exitUsage || !strings.Contains(errs.String(), "--max-tokens=-7: ") || !strings.Contains(errs.String(), `--stop="": must not be empty`) || strings.Contains(errs.String(), `"x"`) {
		t.Errorf("exit code %d:\n%s", code, &errs)
	}
}
