// Package script runs the scripts in testdata: the real moectl command, as users run it, on the models of test/models. It
// checks what comes out and the exit code; what a unit test can reach better stays with its package.
package script

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moerack/moerack/kernels/simd"
	"github.com/moerack/moerack/messages/bus/natsbus/natstest"
)

// bin is the folder with the command that the scripts run.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the command once for all scripts: its packages are internal to cmd, so nothing here can call them.
func run(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "moectl-script"); err == nil {
		defer func() { _ = os.RemoveAll(bin) }()
		err = build("../..", bin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "script:", err)
		return 1
	}
	return m.Run()
}

// build puts moectl into dir, with the race detector if this test has it.
func build(root, dir string) error {
	if err := seeSources(root); err != nil {
		return err
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/moectl")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/moectl: %w\n%s", err, out)
	}
	return nil
}

// seeSources looks at the files that the command is built from. The go command remembers what a test looked at, and so runs
// the scripts again when one of them has changed.
func seeSources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name()[0] == '.' || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" && d.Name() != "go.mod":
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
}

func TestScripts(t *testing.T) {
	models, err := filepath.Abs("../models")
	if err != nil {
		t.Fatal(err)
	}
	server := natstest.Start(t, "")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("MODELS", models)
			env.Setenv("NATS", server.URL)
			if raceEnabled { // an operation may take longer than what is a hang otherwise
				env.Setenv("MOE_STALL_TIMEOUT", "5m")
			}
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "race": // the command has the race detector
				return raceEnabled, nil
			case "simd": // it has fast kernels for this kind of processor
				return len(simd.Names()) > 0, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":       exits,
			"interrupt":   interrupt,
			"firstline":   firstLine,
			"json":        jsonValue,
			"jsonkeys":    jsonKeys,
			"jsonequal":   jsonEqual,
			"count":       count,
			"setjson":     setJSON,
			"copymodel":   copyModel,
			"spoil":       spoil,
			"lines":       lines,
			"prompts":     fixturePrompts,
			"greedy":      fixtureAnswers,
			"layouts":     acrossLayouts,
			"sameanswers": sameAnswers,
			"memory":      memory,
			"parked":      parked,
			"busy":        busy,
			"instep":      inStep,
			"shrinks":     shrinks,
			"lighter":     lighter,
		},
	})
}
