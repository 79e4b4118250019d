package script

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// jsonValue checks "json FILE LINE PATH WANT": the value at PATH (keys and indices parted by dots) of the JSON on that line,
// counted from 0, equals WANT. FILE may be stdout.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: [!] json FILE LINE PATH WANT")
	}
	var want any
	ts.Check(json.Unmarshal([]byte(args[3]), &want))
	got := at(ts, objectOn(ts, args[0], args[1]), args[2])
	if reflect.DeepEqual(got, want) == neg {
		ts.Fatalf("%s is %v", args[2], got)
	}
}

// jsonKeys checks "jsonkeys FILE LINE PATH KEY…": the object at PATH (. is the whole) has exactly these keys.
func jsonKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: jsonkeys FILE LINE PATH KEY…")
	}
	object, ok := at(ts, objectOn(ts, args[0], args[1]), args[2]).(map[string]any)
	if !ok {
		ts.Fatalf("%s is no object", args[2])
	}
	want := slices.Sorted(slices.Values(args[3:]))
	if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, want) {
		ts.Fatalf("%s has keys %v, want %v", args[2], got, want)
	}
}

// jsonEqual checks "jsonequal FILE1 LINE1 FILE2 LINE2 PATH": both have the same value there.
func jsonEqual(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 5 {
		ts.Fatalf("usage: [!] jsonequal FILE1 LINE1 FILE2 LINE2 PATH")
	}
	one, two := at(ts, objectOn(ts, args[0], args[1]), args[4]), at(ts, objectOn(ts, args[2], args[3]), args[4])
	if reflect.DeepEqual(one, two) == neg {
		ts.Fatalf("%s is %v and %v", args[4], one, two)
	}
}

// count checks "count FILE LINE PATH N": the list there has N items.
func count(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: count FILE LINE PATH N")
	}
	list, ok := at(ts, objectOn(ts, args[0], args[1]), args[2]).([]any)
	if !ok || strconv.Itoa(len(list)) != args[3] {
		ts.Fatalf("%s has %d items, want %s", args[2], len(list), args[3])
	}
}

// setJSON changes "setjson FILE KEY VALUE": the key of the object in the file.
func setJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: setjson FILE KEY VALUE")
	}
	object := map[string]json.RawMessage{}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &object))
	object[args[1]] = json.RawMessage(args[2])
	text, err := json.Marshal(object)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o600))
}

// lines checks "lines FILE N": the file has N lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE N")
	}
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d lines, want %s", args[0], n, args[1])
	}
}

func objectOn(ts *testscript.TestScript, file, line string) any {
	n, err := strconv.Atoi(line)
	ts.Check(err)
	all := strings.Split(strings.TrimSuffix(ts.ReadFile(file), "\n"), "\n")
	if n >= len(all) {
		ts.Fatalf("%s has %d lines", file, len(all))
	}
	var value any
	if err := json.Unmarshal([]byte(all[n]), &value); err != nil {
		ts.Fatalf("%s, line %d: %v: %s", file, n, err, all[n])
	}
	return value
}

func at(ts *testscript.TestScript, value any, path string) any {
	if path == "." {
		return value
	}
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				ts.Fatalf("%s: no key %q", path, step)
			}
			value = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				ts.Fatalf("%s: no item %s in a list of %d", path, step, len(v))
			}
			value = v[i]
		default:
			ts.Fatalf("%s: %v has nothing at %s", path, value, step)
		}
	}
	return value
}
