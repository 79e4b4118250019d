package archtest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// repo makes an in-memory module named example.com/m from "path: content" pairs.
func repo(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.com/m\n\ngo 1.26\n")}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// importing returns a Go file of package pkg that imports paths.
func importing(pkg string, paths ...string) string {
	var b strings.Builder
	b.WriteString("package " + pkg + "\n\n")
	for _, p := range paths {
		b.WriteString("import _ \"" + p + "\"\n")
	}
	return b.String()
}

// TestImportTableBites runs this module's own table over small trees with one import each.
func TestImportTableBites(t *testing.T) {
	const m = "example.com/m/"
	tests := []struct {
		name   string
		file   string
		source string
		want   string // part of the only fault; "" for none
	}{
		{"topology imports hal", "topology/a.go", importing("topology", m+"hal"), "topology may import nothing of ours"},
		{"kernels root imports a variant", "kernels/a.go", importing("kernels", m+"kernels/ref"), "kernels may import nothing of ours"},
		{"a variant imports the kernels root", "kernels/ref/a.go", importing("ref", m+"kernels"), ""},
		{"a variant imports hal", "kernels/ref/a.go", importing("ref", m+"hal"), "knows no device"},
		{"hal contract imports a backend", "hal/a.go", importing("hal", m+"hal/cpu"), "hal may import nothing of ours"},
		{"cpu is the door to kernels", "hal/cpu/a.go", importing("cpu", m+"hal", m+"kernels", m+"kernels/ref"), ""},
		{"another backend goes through the door", "hal/ascend/a.go", importing("ascend", m+"kernels"), "binds the vendor's runtime"},
		{"conformance suite names a backend", "hal/haltest/a.go", importing("haltest", m+"hal/cpu"), "it knows none"},
		{"model names a backend", "model/nn/a.go", importing("nn", m+"hal/cpu"), "never names a backend"},
		{"model imports kernels", "model/nn/a.go", importing("nn", m+"kernels/ref"), "never names a backend"},
		{"model imports model", "model/deepseek/a.go", importing("deepseek", m+"model/nn", m+"hal", m+"topology"), ""},
		{"model imports an actor", "model/nn/a.go", importing("nn", m+"actors"), "imports actors"},
		{"weights know no config", "model/weights/a.go", importing("weights", m+"model/config"), "model/weights/... may import"},
		{"chat knows no tokens", "model/chat/a.go", importing("chat", m+"model/token"), "model/chat may import internal/readfile of ours"},
		{"chat's tests know tokens", "model/chat/a_test.go", importing("chat", m+"model/token"), ""},
		{"config's tests do not", "model/config/a_test.go", importing("config", m+"model/token"), "model/config may import internal/readfile of ours"},
		{"vocabulary imports an actor", "actors/a.go", importing("actors", m+"actors/rank"), "vocabulary"},
		{"sibling actors", "actors/rank/a.go", importing("rank", m+"actors/scheduler"), "siblings under actors never import one another"},
		{"sibling actors in a test", "actors/rank/a_test.go", importing("rank", m+"actors/scheduler"), "siblings under actors"},
		{"composition root", "actors/node/a.go", importing("node", m+"actors/rank", m+"actors/scheduler"), ""},
		{"composition root names a backend", "actors/node/a.go", importing("node", m+"hal/cpu"), "handed in by its caller"},
		{"actor test with a backend and a test package", "actors/rank/a_test.go", importing("rank_test", m+"actors/rank", m+"hal/cpu", m+"hal/faulty", m+"actors/actortest"), ""},
		{"test names a vendor backend", "actors/rank/a_test.go", importing("rank", m+"hal/ascend"), "imports hal/ascend"},
		{"command names a backend", "cmd/moectl/a.go", importing("main", m+"hal/cpu", m+"actors/node", m+"internal/config"), ""},
		{"library reads configuration", "actors/node/a.go", importing("node", m+"internal/config"), "imports internal/config"},
		{"somebody imports cmd", "model/nn/a_test.go", importing("nn", m+"cmd/moectl/internal/cli"), "nothing imports cmd, examples, test"},
		{"command imports test", "cmd/moectl/a.go", importing("main", m+"test/cluster"), "nothing imports cmd, examples, test"},
		{"test imports test", "test/parity/a.go", importing("parity", m+"test/cluster"), ""},
		{"package without a row", "shiny/a.go", importing("shiny", "fmt"), "say where it sits"},
		{"root package without a row", "a.go", importing("m", "fmt"), "say where it sits"},

		{"cgo outside its homes", "model/nn/a.go", "package nn\n\nimport \"C\"\n", `imports "C" (cgo)`},
		{"cgo in kernels", "kernels/avx/a.go", "package avx\n\nimport \"C\"\n", ""},
		{"cgo behind a build tag", "hal/cpu/a.go", "//go:build ascend && cgo\n\npackage cpu\n\nimport \"C\"\n", "CGO_ENABLED=0"},
		{"violation behind a build tag", "topology/a_plan9.go", "//go:build never\n\npackage topology\n\nimport _ \"example.com/m/hal\"\n", "imports hal"},
		{"unsafe", "model/nn/a.go", importing("nn", "unsafe"), "imports unsafe"},
		{"global random", "model/sample/a.go", importing("sample", "math/rand"), "use math/rand/v2"},
		{"own random source", "model/sample/a.go", importing("sample", "math/rand/v2"), ""},
		{"standard log", "actors/node/a.go", importing("node", "log"), "*slog.Logger"},
		{"structured log", "actors/node/a.go", importing("node", "log/slog"), ""},
		{"testing in a shipped package", "model/nn/a.go", importing("nn", "testing"), "do not link the test framework"},
		{"testing in a test", "model/nn/a_test.go", importing("nn", "testing", "testing/synctest"), ""},
		{"testing in a suite", "hal/haltest/a.go", importing("haltest", "testing"), ""},
		{"actor library in actors", "actors/rank/a.go", importing("rank", "github.com/asynkron/protoactor-go/actor"), ""},
		{"actor library elsewhere", "model/nn/a.go", importing("nn", "github.com/asynkron/protoactor-go/actor"), "it belongs to actors/..."},
		{"remote of the actor library", "actors/node/a.go", importing("node", "github.com/asynkron/protoactor-go/remote"), "it belongs to nothing"},
		{"broker outside the bus", "actors/node/a.go", importing("node", "github.com/nats-io/nats.go"), "it belongs to messages/bus/natsbus/..."},
		{"unknown third party", "model/nn/a.go", importing("nn", "example.org/fancy"), "third party without an owner"},
		{"leak checker in a test", "actors/rank/a_test.go", importing("rank", "go.uber.org/goleak"), ""},
		{"leak checker in a package", "actors/rank/a.go", importing("rank", "go.uber.org/goleak"), "a test aid"},
		{"prefix stops at a slash", "cmd/moectl/a.go", importing("main", "github.com/spf13/cobraesque"), "third party without an owner"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree, err := Load(repo(map[string]string{test.file: test.source}))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, CheckImports(tree, table), test.want)
		})
	}
}

// TestLongestRowCounts pins which of several rows covers a package.
func TestLongestRowCounts(t *testing.T) {
	policy := Policy{Rows: []Row{{Package: "a/..."}, {Package: "a/b/..."}, {Package: "a/b"}, {Package: "a/b/c/..."}}}
	tests := []struct{ dir, want string }{
		{"a", "a/..."}, {"a/x", "a/..."}, {"a/b", "a/b"}, {"a/b/x/y", "a/b/..."}, {"a/b/c", "a/b/c/..."}, {"a/bb", "a/..."}, {"ab", ""},
	}
	for _, test := range tests {
		if row, _ := policy.row(test.dir); row.Package != test.want {
			t.Errorf("row(%q) = %q, want %q", test.dir, row.Package, test.want)
		}
	}
}

// expect wants exactly one fault holding want, or none if want is empty.
func expect(t *testing.T, faults []Fault, want string) {
	t.Helper()
	switch {
	case want == "" && len(faults) > 0:
		t.Errorf("faults = %v, want none", faults)
	case want != "" && (len(faults) != 1 || !strings.Contains(faults[0].String(), want)):
		t.Errorf("faults = %v, want one with %q", faults, want)
	}
}
