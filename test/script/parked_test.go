package script

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// parkedFor is how long a parked command is watched, and idleShare how much of a core it may use meanwhile.
const (
	parkedFor = 10 * time.Second
	idleShare = 0.005
)

// parked runs "parked COMMAND ARG… -", gives it a prompt, waits for the answer, watches its processor time with its input held open, and
// then gives it a second prompt, which must be answered. Each prompt is 4 ids, each answer 6 tokens. Both answers are the script's stdout.
// The wait is real time: whether an idle process uses none cannot be seen otherwise.
func parked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: parked COMMAND ARG…")
	}
	reader, input, err := os.Pipe()
	ts.Check(err)
	p := startWith(ts, args, reader)
	ts.Check(reader.Close())
	ask := func(first int) {
		_, err := fmt.Fprintf(input, `{"prompt": [%d, 20, 81, 7], "max_tokens": 6, "ignore_eos": true}`+"\n", first)
		ts.Check(err)
	}
	ask(0)
	one := p.read(ts, "line")
	before := processorTime(ts, p.cmd.Process.Pid)
	<-time.After(parkedFor)
	used := processorTime(ts, p.cmd.Process.Pid) - before
	ts.Logf("parked: %v of processor time in %v", used, parkedFor)
	if used > time.Duration(idleShare*float64(parkedFor)) {
		ts.Fatalf("a parked command used %v of processor time in %v, want at most %v %%", used, parkedFor, 100*idleShare)
	}
	ask(42)
	two := p.read(ts, "line")
	ts.Check(input.Close())
	rest, err := io.ReadAll(p.out)
	ts.Check(err)
	_, err = ts.Stdout().Write(append(append(one, two...), rest...))
	ts.Check(err)
	if code := p.wait(ts); code != 0 {
		ts.Fatalf("exit code %d, want 0", code)
	}
}

// ticksPerSecond is the unit of times in /proc, which Linux fixes for programs whatever the kernel's clock is.
const ticksPerSecond = 100

// processorTime reads what a process has used so far, in user and system mode.
func processorTime(ts *testscript.TestScript, pid int) time.Duration {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	ts.Check(err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from field 3 on: the name before may have spaces
	var ticks int
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		ts.Check(err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
