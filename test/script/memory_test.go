package script

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// memory runs "memory ANONYMOUS FILE COMMAND ARG… -", gives it a prompt of 4 ids and, after the answer of 6 tokens, looks at its memory
// while its input is held open: at most ANONYMOUS MiB may be its own, and at least FILE MiB must be pages of files.
func memory(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: memory ANONYMOUS FILE COMMAND ARG…")
	}
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	least, err := strconv.Atoi(args[1])
	ts.Check(err)
	reader, input, err := os.Pipe()
	ts.Check(err)
	p := startWith(ts, args[2:], reader)
	ts.Check(reader.Close())
	_, err = fmt.Fprintln(input, `{"prompt": [0, 20, 81, 7], "max_tokens": 6, "ignore_eos": true}`)
	ts.Check(err)
	answer := p.read(ts, "line")
	anonymous, file := resident(ts, p.cmd.Process.Pid, "RssAnon"), resident(ts, p.cmd.Process.Pid, "RssFile")
	ts.Check(input.Close())
	rest, err := io.ReadAll(p.out)
	ts.Check(err)
	_, err = ts.Stdout().Write(append(answer, rest...))
	ts.Check(err)
	if code := p.wait(ts); code != 0 {
		ts.Fatalf("exit code %d, want 0", code)
	}
	ts.Logf("memory: %d MiB anonymous, %d MiB of files", anonymous, file)
	if anonymous > most || file < least {
		ts.Fatalf("%d MiB anonymous, want %d at most; %d MiB of files, want %d at least", anonymous, most, file, least)
	}
}

// resident reads a line of /proc/PID/status, in MiB rounded down.
func resident(ts *testscript.TestScript, pid int, name string) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	ts.Check(err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			ts.Check(err)
			return kib >> 10
		}
	}
	ts.Fatalf("no %s in the status of process %d", name, pid)
	return 0
}
