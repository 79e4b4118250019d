package script

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// environment are the variables that a command started here gets; scripts set them with env.
var environment = []string{"PATH", "HOME", "TMPDIR", "MODELS", "WORK", "MOE_STALL_TIMEOUT"}

// exits runs "exits CODE COMMAND ARG…" and wants that exit code. The script's stdin, stdout and stderr work as for exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG…")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// interrupt runs "interrupt UNIT COMMAND ARG…", waits for the first byte or line on its standard output, sends it SIGINT and
// wants exit code 130.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[0] != "byte" && args[0] != "line" {
		ts.Fatalf("usage: interrupt byte|line COMMAND ARG…")
	}
	p := start(ts, args[1:])
	begun := p.read(ts, args[0])
	ts.Check(p.cmd.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(p.out)
	ts.Check(err)
	code := p.wait(ts)
	_, err = ts.Stdout().Write(append(begun, rest...))
	ts.Check(err)
	if code != 130 {
		ts.Fatalf("exit code %d after an interrupt, want 130", code)
	}
}

// firstLine runs "firstline COMMAND ARG…", reads one line of its standard output, closes it, and wants the command to end by
// itself, without success and without a panic.
func firstLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: firstline COMMAND ARG…")
	}
	p := start(ts, args)
	line := p.read(ts, "line")
	ts.Check(p.pipe.Close())
	code := p.wait(ts)
	_, err := ts.Stdout().Write(line)
	ts.Check(err)
	if code == 0 || strings.Contains(p.stderr.String(), "panic") || strings.Contains(p.stderr.String(), "goroutine ") {
		ts.Fatalf("exit code %d after its output was closed", code)
	}
}

// process is a command whose output is read while it runs.
type process struct {
	cmd    *exec.Cmd
	pipe   io.ReadCloser
	out    *bufio.Reader // over pipe
	stderr bytes.Buffer
}

func start(ts *testscript.TestScript, args []string) *process { return startWith(ts, args, nil) }

func startWith(ts *testscript.TestScript, args []string, stdin io.Reader) *process {
	p := &process{cmd: exec.Command(filepath.Join(bin, args[0]), args[1:]...)}
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stderr = ts.MkAbs("."), stdin, &p.stderr
	for _, name := range environment {
		if value := ts.Getenv(name); value != "" {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	var err error
	p.pipe, err = p.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	ts.Defer(func() { _ = p.cmd.Process.Kill() }) // no effect on one that has ended
	p.out = bufio.NewReader(p.pipe)
	return p
}

func (p *process) read(ts *testscript.TestScript, unit string) []byte {
	if unit == "byte" {
		b, err := p.out.ReadByte()
		ts.Check(err)
		return []byte{b}
	}
	line, err := p.out.ReadBytes('\n')
	ts.Check(err)
	return line
}

// wait waits for the end, hands standard error to the script and returns the exit code, −1 if a signal ended it.
func (p *process) wait(ts *testscript.TestScript) int {
	err := p.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	_, err = ts.Stderr().Write(p.stderr.Bytes())
	ts.Check(err)
	return p.cmd.ProcessState.ExitCode()
}
