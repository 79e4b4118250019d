package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const tinyV3 = "../../test/models/tiny-v3"

func TestEnginesAnswerAsOneAlone(t *testing.T) {
	for _, engines := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(engines), func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), []string{tinyV3, fmt.Sprint(engines)}, &out); err != nil {
				t.Fatal(err)
			}
			if same := strings.Count(out.String(), "the same as from one engine"); same != len(prompts) {
				t.Errorf("%d answers, want %d:\n%s", same, len(prompts), &out)
			}
			if lines := strings.Count(out.String(), "of them without a row of its own"); lines != engines {
				t.Errorf("counters of %d engines, want %d:\n%s", lines, engines, &out)
			}
		})
	}
}

func TestRunNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "usage: dp_offline DIR ENGINES"},
		{[]string{tinyV3, "many"}, `ENGINES "many"`},
		{[]string{"nowhere", "2"}, "nowhere"},
		{[]string{tinyV3, "0"}, "data-parallel-size=0"},
		{[]string{tinyV3, "3"}, "must divide"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), c.args, &out); err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("%v: %v, output %q", c.args, err, &out)
		}
	}
}
