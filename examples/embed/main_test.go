package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

const tinyV3 = "../../test/models/tiny-v3"

func TestRunPrintsTheAnswer(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{tinyV3, "KING HENRY:", "12"}, &out); err != nil {
		t.Fatal(err)
	}
	// What moectl generate --temperature 0 prints for the same prompt; test/script compares those tokens with the reference.
	if want := "\nI will not be so.\n\nKING RICHARD III:\nI am\n[length]\n"; !strings.HasSuffix(out.String(), want[1:]) {
		t.Errorf("got %q, want the end %q", out.String(), want)
	}
}

func TestRunNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "usage: embed DIR PROMPT MAX_TOKENS"},
		{[]string{tinyV3, "a", "many"}, `MAX_TOKENS "many"`},
		{[]string{"nowhere", "a", "1"}, "nowhere"},
		{[]string{tinyV3, "a", "-1"}, "max_tokens=-1"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), c.args, &out); err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("%v: %v, output %q", c.args, err, &out)
		}
	}
}

// cancelingWriter ends a context with its first write.
type cancelingWriter struct {
	text   bytes.Buffer
	cancel context.CancelFunc
}

func (w *cancelingWriter) Write(p []byte) (int, error) {
	w.cancel()
	return w.text.Write(p)
}

func TestCanceledContextAbortsTheAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &cancelingWriter{cancel: cancel}
	if err := run(ctx, []string{tinyV3, "KING HENRY:", "1000"}, out); err != nil {
		t.Fatal(err)
	}
	if got := out.text.String(); !strings.HasSuffix(got, "\n[abort]\n") {
		t.Errorf("got %q, want it aborted", got)
	}
}
