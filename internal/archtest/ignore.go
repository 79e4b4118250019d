package archtest

import (
	"io/fs"
	"path"
	"strings"
)

// ignore is the part of .gitignore that this repository uses: "/dir/" and "/file" anchored at the root, and name patterns
// such as "*.prof". Negations and patterns with inner slashes are not read.
type ignore []string

// loadIgnore reads .gitignore at the root of fsys; without one nothing is ignored.
func loadIgnore(fsys fs.FS) ignore {
	text, err := fs.ReadFile(fsys, ".gitignore")
	if err != nil {
		return nil
	}
	var rules ignore
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			rules = append(rules, line)
		}
	}
	return rules
}

// match reports whether git ignores p.
func (rules ignore) match(p string, dir bool) bool {
	for _, rule := range rules {
		name, dirOnly := strings.CutSuffix(rule, "/")
		if dirOnly && !dir {
			continue
		}
		subject := path.Base(p)
		if anchored, ok := strings.CutPrefix(name, "/"); ok {
			name, subject = anchored, p
		}
		if ok, err := path.Match(name, subject); err == nil && ok {
			return true
		}
	}
	return false
}
