package script

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// layouts are the flags of the layouts that every model is run on, one rank alone first. Those of one TP degree, and where it is above 1 of
// one setting of expert parallelism, give the same bits.
var layouts = []struct {
	bits  string // layouts with the same word agree to the bit
	flags string
}{
	{"tp1", ""},
	{"tp1", "--enable-expert-parallel"},
	{"tp1", "--data-parallel-size 2"},
	{"tp1", "--data-parallel-size 2 --enable-expert-parallel"},
	{"tp1", "--data-parallel-size 4"},
	{"tp1", "--data-parallel-size 4 --enable-expert-parallel"},
	{"tp2", "--tensor-parallel-size 2"},
	{"tp2", "--tensor-parallel-size 2 --data-parallel-size 2"},
	{"tp2ep", "--tensor-parallel-size 2 --enable-expert-parallel"},
	{"tp2ep", "--tensor-parallel-size 2 --data-parallel-size 2 --enable-expert-parallel"},
}

// acrossLayouts runs "layouts FIXTURE MODEL [odd]": the fixture's prompts on all layouts, those with TP 2 only where the number of heads is
// even. All answers are the fixture's; layouts that must agree to the bit do, log-probabilities included.
func acrossLayouts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) == 3 && args[2] != "odd" || len(args) > 3 {
		ts.Fatalf("usage: layouts FIXTURE MODEL [odd]")
	}
	fixturePrompts(ts, false, []string{args[0], "layouts.jsonl"})
	first := map[string][]map[string]any{}
	for _, l := range layouts {
		if len(args) == 3 && strings.HasPrefix(l.bits, "tp2") {
			continue
		}
		command := []string{"0", "moectl", "generate", "--model", filepath.Join(ts.Getenv("MODELS"), args[1]), "--prompts-file", "layouts.jsonl", "-o", "json"}
		exits(ts, false, append(command, strings.Fields(l.flags)...))
		fixtureAnswers(ts, false, []string{args[0], "stdout"})
		answers := withoutEngines(ts, ts.ReadFile("stdout"))
		if want, ok := first[l.bits]; !ok {
			first[l.bits] = answers
		} else if !reflect.DeepEqual(answers, want) {
			ts.Fatalf("%s: answers differ in their bits from those of the first layout of %s", l.flags, l.bits)
		}
	}
}

// sameAnswers checks "sameanswers FILE1 FILE2": the objects are the same in all but the engine, log-probabilities to the bit.
func sameAnswers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sameanswers FILE1 FILE2")
	}
	a, b := withoutEngines(ts, ts.ReadFile(args[0])), withoutEngines(ts, ts.ReadFile(args[1]))
	if len(a) == 0 || !reflect.DeepEqual(a, b) {
		ts.Fatalf("%s has %d answers, %s %d, or they differ", args[0], len(a), args[1], len(b))
	}
}

// withoutEngines reads answers and takes out who served them. Numbers stay texts: equal texts are equal bits.
func withoutEngines(ts *testscript.TestScript, text string) []map[string]any {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var all []map[string]any
	for dec.More() {
		var answer map[string]any
		ts.Check(dec.Decode(&answer))
		if _, ok := answer["engine"]; !ok {
			ts.Fatalf("answer %d has no engine: %s", len(all), fmt.Sprint(answer))
		}
		delete(answer, "engine")
		all = append(all, answer)
	}
	return all
}
