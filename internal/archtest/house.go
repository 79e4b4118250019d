package archtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxLines is the length from which a Go file has to say why it is that long.
	maxLines = 700
	// maxBytes is the largest file the repository takes: test models fit below it, a build output or a real checkpoint does not.
	maxBytes = 8 << 20
	// excuseMark starts the comment, within the first excuseLines lines, that says why a file is long.
	excuseMark  = "// Long file: "
	excuseLines = 40
)

// excuse reports whether the first lines of src hold the mark followed by a reason.
func excuse(src []byte) bool {
	n := 0
	for line := range bytes.Lines(src) {
		if n++; n > excuseLines {
			return false
		}
		if why, ok := bytes.CutPrefix(line, []byte(excuseMark)); ok && len(bytes.TrimSpace(why)) > 0 {
			return true
		}
	}
	return false
}

// CheckHouse returns the faults of the tree against the rules that are not about imports.
func CheckHouse(tree *Tree) []Fault {
	faults := checkDocs(tree)
	for _, file := range tree.Files {
		if file.Lines > maxLines && !file.Excused {
			faults = append(faults, Fault{
				file.Path, fmt.Sprintf("%d lines", file.Lines),
				fmt.Sprintf("a file has one idea and at most %d lines; split it, or say why near its top: %q", maxLines, excuseMark+"…"),
			})
		}
		if file.Test {
			for _, line := range file.Sleeps {
				faults = append(faults, Fault{
					fmt.Sprintf("%s:%d", file.Path, line), "time.Sleep in a test",
					"wait on a condition or a channel, or use testing/synctest",
				})
			}
		}
	}
	for _, size := range tree.Sizes {
		if size.Bytes > maxBytes {
			faults = append(faults, Fault{
				size.Path, fmt.Sprintf("%d bytes", size.Bytes),
				fmt.Sprintf("files of the repository have at most %d bytes; make it smaller, or add it to .gitignore if it is built", maxBytes),
			})
		}
	}
	return faults
}

// checkDocs wants one package doc comment per folder, in a non-test file where there is one.
func checkDocs(tree *Tree) []Fault {
	byDir := map[string][]File{}
	for _, file := range tree.Files {
		byDir[file.Dir] = append(byDir[file.Dir], file)
	}
	var faults []Fault
	for dir, files := range byDir {
		if slices.ContainsFunc(files, func(f File) bool { return !f.Test }) {
			files = slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.Test })
		}
		var with []string
		for _, file := range files {
			if file.Doc == "" {
				continue
			}
			with = append(with, file.Path)
			if want := "Package " + file.Package + " "; file.Package != "main" && !strings.HasPrefix(file.Doc, want) {
				faults = append(faults, Fault{
					file.Path, "package doc comment does not start with " + strings.TrimSpace(want),
					"say in one sentence what the package owns",
				})
			}
		}
		switch len(with) {
		case 1:
		case 0:
			faults = append(faults, Fault{dir, "no package doc comment", "say what the package owns and what it will not do"})
		default:
			faults = append(faults, Fault{dir, "package doc comment in " + strings.Join(with, ", "), "keep one"})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Where, b.Where) })
	return faults
}
