package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// File is what the checks need to know of one Go file.
type File struct {
	Path    string   // slash-separated, relative to the root
	Dir     string   // folder of Path; "." at the root
	Package string   // name in the package clause
	Test    bool     // name ends in _test.go
	Imports []string // import paths as written, "C" included
	Doc     string   // text of the package doc comment, directives removed; "" if there is none
	Sleeps  []int    // lines that call time.Sleep
	Lines   int      // number of lines
	Excused bool     // generated, or its first lines say why it is long
}

// Tree is the source of one module.
type Tree struct {
	Module string // module path from go.mod
	Files  []File // all Go files of the module, whatever their build tags
	Sizes  []Size // all regular files of the repository that git does not ignore
}

// Size is the length of one file.
type Size struct {
	Path  string // slash-separated, relative to the root
	Bytes int64
}

// Load reads the module at the root of fsys. It fails when go.mod is missing or a Go file does not parse; the error names the file.
func Load(fsys fs.FS) (*Tree, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("archtest: read go.mod: %w (is this the repository root?)", err)
	}
	tree := &Tree{Module: modulePath(mod)}
	if tree.Module == "" {
		return nil, fmt.Errorf("archtest: go.mod: no module line")
	}
	ignored := loadIgnore(fsys)
	nested := "" // folder of the nested module the walk is in
	err = fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p != "." && ignored.match(p, d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if p != "." && d.Name() == ".git" {
				return fs.SkipDir
			}
			if _, err := fs.Stat(fsys, path.Join(p, "go.mod")); err == nil && p != "." {
				nested = p + "/"
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		tree.Sizes = append(tree.Sizes, Size{Path: p, Bytes: info.Size()})
		inNested := nested != "" && strings.HasPrefix(p, nested)
		if path.Ext(p) != ".go" || inNested || unseen(path.Dir(p)) {
			return nil
		}
		src, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		file, err := parse(p, src)
		if err != nil {
			return err
		}
		tree.Files = append(tree.Files, file)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("archtest: %w", err)
	}
	return tree, nil
}

// unseen reports whether the go command would not look for packages in dir.
func unseen(dir string) bool {
	if dir == "." {
		return false
	}
	for part := range strings.SplitSeq(dir, "/") {
		if part == "testdata" || part == "vendor" || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") {
			return true
		}
	}
	return false
}

func modulePath(mod []byte) string {
	for line := range strings.Lines(string(mod)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.Trim(strings.TrimSpace(name), `"`)
		}
	}
	return ""
}

func parse(name string, src []byte) (File, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, err
	}
	file := File{
		Path:    name,
		Dir:     path.Dir(name),
		Package: tree.Name.Name,
		Test:    strings.HasSuffix(name, "_test.go"),
		Doc:     tree.Doc.Text(),
		Lines:   bytes.Count(src, []byte("\n")),
		Excused: ast.IsGenerated(tree) || excuse(src),
	}
	clock := "" // the name under which the file knows package time
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return File{}, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		file.Imports = append(file.Imports, imported)
		if imported == "time" {
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		}
	}
	if clock != "" {
		ast.Inspect(tree, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
				if id, ok := sel.X.(*ast.Ident); ok && id.Name == clock {
					file.Sleeps = append(file.Sleeps, set.Position(sel.Pos()).Line)
				}
			}
			return true
		})
	}
	return file, nil
}
