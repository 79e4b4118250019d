package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
)

const tinyV3 = "../../../../test/models/tiny-v3"

// host returns a process with the CPU backend that runs args.
func host(out, errs io.Writer, args ...string) Host {
	return Host{
		Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Exit: func(int) {},
		Backends: []Backend{{Name: "cpu", Open: func(index int, c Compute) (hal.Device, error) {
			return cpu.Open(cpu.Options{Index: index, Threads: c.Threads, Off: c.KernelsOff})
		}}},
	}
}

// session is a command that runs while the test talks to it.
type session struct {
	in   *io.PipeWriter
	out  *bufio.Reader
	errs bytes.Buffer // to be read after the end
	code chan int
}

func begin(t *testing.T, change func(*Host), args ...string) *session {
	t.Helper()
	s := &session{code: make(chan int, 1)}
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	s.in, s.out = in, bufio.NewReader(out)
	h := host(stdout, &s.errs, args...)
	h.Stdin = stdin
	change(&h)
	go func() {
		s.code <- Run(h)
		stdout.Close()
	}()
	t.Cleanup(func() { in.Close(); out.Close() })
	return s
}

func (s *session) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (s *session) hear(t *testing.T) object {
	t.Helper()
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v; standard error:\n%s", err, &s.errs)
	}
	var o object
	if err := json.Unmarshal(line, &o); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return o
}

func TestStandardInputIsAConversation(t *testing.T) {
	s := begin(t, func(*Host) {}, "generate", "--model", tinyV3, "-", "-o", "json", "--temperature", "0", "--max-tokens", "2")
	for i, c := range []struct{ line, finish string }{
		{`{"prompt": [0]}`, "length"}, {`nonsense`, "error"}, {`{"prompt": [0, 466]}`, "length"},
	} {
		s.say(t, c.line)
		if o := s.hear(t); o.Index != i || o.FinishReason != c.finish {
			t.Errorf("%s: %+v", c.line, o)
		}
	}
	s.in.Close()
	if code := <-s.code; code != exitUsage {
		t.Errorf("exit code %d after a faulty line, want 2:\n%s", code, &s.errs)
	}
}

func TestInterruptWhileStandardInputIsOpen(t *testing.T) {
	signals := make(chan os.Signal, 2)
	stats := filepath.Join(t.TempDir(), "stats.json")
	s := begin(t, func(h *Host) { h.Signals = signals }, "generate", "--model", tinyV3, "-", "-o", "json", "--ignore-eos", "--stats-file", stats)
	s.say(t, `{"prompt": [0], "max_tokens": 1}`)
	s.say(t, `{"prompt": [0], "max_tokens": 1000}`)
	if o := s.hear(t); o.FinishReason != "length" {
		t.Errorf("first %+v", o)
	}
	s.say(t, ``) // taken after the second prompt was handed over
	signals <- os.Interrupt
	if o := s.hear(t); o.FinishReason != "abort" || o.Index != 1 || len(o.PromptTokenIDs) != 1 {
		t.Errorf("second %+v", o)
	}
	if code := <-s.code; code != exitInterrupted {
		t.Errorf("exit code %d, want 130:\n%s", code, &s.errs)
	}
	var got struct {
		Engines []struct {
			All  int `json:"kv_blocks"`
			Free int `json:"kv_blocks_free"`
		} `json:"engines"`
	}
	data, err := os.ReadFile(stats)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil || len(got.Engines) != 1 || got.Engines[0].Free != got.Engines[0].All {
		t.Errorf("stats %s: %v", data, err)
	}
}

// A signal that comes while there is nothing to end in order ends the process, whatever blocks.
func TestInterruptBeforeTheModel(t *testing.T) {
	signals, ended := make(chan os.Signal, 2), make(chan int, 1)
	s := begin(t, func(h *Host) { h.Signals, h.Exit = signals, func(code int) { ended <- code } }, "tokenize", "--model", tinyV3, "-")
	signals <- syscall.SIGTERM
	if code := <-ended; code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	s.in.Close() // Exit has only said so here
	go func() { _, _ = io.Copy(io.Discard, s.out) }()
	<-s.code
	if s.errs.String() != "moectl: interrupted\n" {
		t.Errorf("standard error %q", &s.errs)
	}
}

// failingWriter takes n writes.
type failingWriter struct {
	n   int
	err error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.n--; w.n < 0 {
		return 0, w.err
	}
	return len(p), nil
}

func TestOutputThatCannotBeWrittenEndsTheRun(t *testing.T) {
	prompts := filepath.Join(t.TempDir(), "p.jsonl")
	line := `{"prompt": [0], "max_tokens": 900, "ignore_eos": true}` + "\n"
	if err := os.WriteFile(prompts, []byte(`{"prompt": [0], "max_tokens": 1}`+"\n"+strings.Repeat(line, 5)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		said string // on standard error, "" for nothing
	}{{syscall.EPIPE, ""}, {syscall.ENOSPC, "moectl: standard output: no space left"}} {
		var errs bytes.Buffer
		code := Run(host(&failingWriter{0, c.err}, &errs, "generate", "--model", tinyV3, "--prompts-file", prompts, "-o", "json", "--log-level", "error"))
		if code != exitFailure {
			t.Errorf("%v: exit code %d", c.err, code)
		}
		if c.said == "" && errs.Len() > 0 || !strings.Contains(errs.String(), c.said) {
			t.Errorf("%v: standard error %q", c.err, &errs)
		}
	}
}

// A help text that cannot be written is no success.
func TestHelpThatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		err  error
		said string
	}{{syscall.EPIPE, ""}, {syscall.ENOSPC, "no space left on device\n"}} {
		for _, args := range [][]string{{"--help"}, {"generate", "--help"}, {"help", "doctor"}, {"completion", "bash"}, {"version"}} {
			var errs bytes.Buffer
			code := Run(host(&failingWriter{0, c.err}, &errs, args...))
			if code != exitFailure || !strings.HasSuffix(errs.String(), c.said) || c.said == "" && errs.Len() > 0 {
				t.Errorf("%v, %v: exit code %d, standard error %q", args, c.err, code, &errs)
			}
		}
	}
}

func TestPromptThatIsNoText(t *testing.T) {
	var out, errs bytes.Buffer
	code := Run(host(&out, &errs, "generate", "--model", tinyV3, "--prompt", "ok", "--prompt", "\ufffd\xc3(", "--prompt-ids", "99999"))
	if code != exitUsage || !strings.Contains(errs.String(), "prompt 1 (--prompt): is not UTF-8: byte 3 is 0xc3\n") || !strings.Contains(errs.String(), "prompt 2 (--prompt-ids): ") {
		t.Errorf("exit code %d:\n%s", code, &errs)
	}
}

func TestDeviceThatDoesNotOpen(t *testing.T) {
	var out, errs bytes.Buffer
	h := host(&out, &errs, "generate", "--model", tinyV3, "--prompt-ids", "0", "--log-level", "error")
	h.Backends[0].Open = func(int, Compute) (hal.Device, error) { return nil, errors.New("no such card") }
	if code := Run(h); code != exitFailure || out.Len() > 0 || !strings.Contains(errs.String(), "no such card") {
		t.Errorf("exit code %d, output %q, standard error %q", code, &out, &errs)
	}
	h.Args = []string{"doctor"}
	if code := Run(h); code != exitFailure || !strings.Contains(out.String(), "FAIL  backend cpu   no such card") {
		t.Errorf("doctor: exit code %d, output %q", code, &out)
	}
}

func TestExitCodes(t *testing.T) {
	failure, usage := errors.New("disk"), usagef("flag")
	for _, c := range []struct {
		err  error
		code int
		said string
	}{
		{nil, 0, ""},
		{failure, 1, "disk"},
		{usage, 2, "flag"},
		{errInterrupted, 130, "interrupted"},
		{reportedError{2}, 2, ""},
		{errors.Join(usage, reportedError{1}), 1, "flag"},
		{errors.Join(reportedError{1}, nil), 1, ""},
		{errors.Join(errInterrupted, reportedError{1}), 130, "interrupted"},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
		said := ""
		if err := unreported(c.err); err != nil {
			said = err.Error()
		}
		if said != c.said {
			t.Errorf("%v: says %q, want %q", c.err, said, c.said)
		}
	}
}
