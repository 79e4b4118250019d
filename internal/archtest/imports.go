package archtest

import (
	"path"
	"strings"
)

// Row says what one package, or a folder of packages, may import of ours.
type Row struct {
	// Package is a path inside the module: "hal" is that package alone, "kernels/..." also covers everything below it.
	// Of several rows that cover a package the longest counts, an exact one before a pattern.
	Package string
	// May lists what it may import, in the same form; "..." is the whole module.
	May []string
	// Why is printed with a fault.
	Why string
	// Test lists what its _test.go files may import on top of May and Policy.TestMay.
	Test []string
}

// Owner says which packages may import a third party or a restricted standard package.
type Owner struct {
	// Import is an import path, as a prefix at a slash; the longest that fits counts.
	Import string
	// Owners are the packages, in the form of Row.Package; none means nobody.
	Owners []string
	// Tests opens it to _test.go files everywhere and to packages whose name ends in "test".
	Tests bool
	// Why is printed with a fault.
	Why string
}

// Policy is the import table of a module.
type Policy struct {
	Rows   []Row
	Owners []Owner
	// Tops are folders that only packages of the same folder may import.
	Tops []string
	// TestMay lists what _test.go files may import on top of their row, in the form of Row.May.
	// Packages of ours whose name ends in "test" are open to every _test.go file as well.
	TestMay []string
}

// CheckImports returns the faults of the tree against the policy.
func CheckImports(tree *Tree, policy Policy) []Fault {
	var faults []Fault
	homeless := map[string]bool{}
	for _, file := range tree.Files {
		row, ok := policy.row(file.Dir)
		if !ok && !homeless[file.Dir] {
			homeless[file.Dir] = true
			faults = append(faults, Fault{
				file.Dir, "package is not in the import table",
				"say where it sits: add a row to internal/archtest/table.go with what it may import and why",
			})
		}
		for _, imported := range file.Imports {
			inside, ours := within(tree.Module, imported)
			switch {
			case ours && ok:
				if why := policy.ours(file, row, inside); why != "" {
					faults = append(faults, Fault{file.Path, "imports " + inside, why})
				}
			case !ours:
				if why := policy.theirs(file, imported); why != "" {
					faults = append(faults, Fault{file.Path, "imports " + quoteC(imported), why})
				}
			}
		}
	}
	return faults
}

// ours returns why file may not import a package of the module, or "".
func (p Policy) ours(file File, row Row, inside string) string {
	for _, top := range p.Tops {
		if covers(top+"/...", inside) && !covers(top+"/...", file.Dir) {
			return "nothing imports " + strings.Join(p.Tops, ", ") + "; move what you need into a package of its own"
		}
	}
	if anyCovers(row.May, inside) {
		return ""
	}
	if file.Test && (inside == file.Dir || testPackage(inside) || anyCovers(row.Test, inside) || anyCovers(p.TestMay, inside)) {
		return ""
	}
	return row.Package + " may import " + list(row.May) + " of ours (" + row.Why + ")"
}

// theirs returns why file may not import a package from outside the module, or "".
func (p Policy) theirs(file File, imported string) string {
	var owner *Owner
	for i, o := range p.Owners {
		if fits := imported == o.Import || strings.HasPrefix(imported, o.Import+"/"); fits && (owner == nil || len(o.Import) > len(owner.Import)) {
			owner = &p.Owners[i]
		}
	}
	switch {
	case owner == nil && !thirdParty(imported):
		return ""
	case owner == nil:
		return "third party without an owner: add it to internal/archtest/table.go with the packages that may import it and why"
	case anyCovers(owner.Owners, file.Dir), owner.Tests && (file.Test || testPackage(file.Dir)):
		return ""
	}
	return "it belongs to " + list(owner.Owners) + " (" + owner.Why + ")"
}

// row returns the longest row that covers dir.
func (p Policy) row(dir string) (Row, bool) {
	best, found := Row{}, false
	for _, row := range p.Rows {
		if !covers(row.Package, dir) {
			continue
		}
		if row.Package == dir {
			return row, true
		}
		if !found || len(row.Package) > len(best.Package) {
			best, found = row, true
		}
	}
	return best, found
}

// covers reports whether pattern names dir: equal, or "x/..." for x and everything below it.
func covers(pattern, dir string) bool {
	if pattern == "..." {
		return true
	}
	base, tree := strings.CutSuffix(pattern, "/...")
	return dir == base || tree && strings.HasPrefix(dir, base+"/")
}

func anyCovers(patterns []string, dir string) bool {
	for _, pattern := range patterns {
		if covers(pattern, dir) {
			return true
		}
	}
	return false
}

// testPackage reports whether a folder holds aids for tests, such as a conformance suite.
func testPackage(dir string) bool { return strings.HasSuffix(path.Base(dir), "test") }

// within returns the path of an import inside the module.
func within(module, imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// thirdParty reports whether an import path is neither ours nor the standard library's: its first element has a dot.
func thirdParty(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

func quoteC(imported string) string {
	if imported == "C" {
		return `"C" (cgo)`
	}
	return imported
}

func list(patterns []string) string {
	if len(patterns) == 0 {
		return "nothing"
	}
	return strings.Join(patterns, ", ")
}
