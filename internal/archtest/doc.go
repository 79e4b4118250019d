// Package archtest holds the shape of the repository as tables with reasons and checks the source tree against them.
//
// It owns the import table (which package may import which, and which package owns each third party), and the house rules
// that a compiler does not check: one doc comment per package, a limit on file length and size, no sleeping tests.
// Files are parsed, not listed by the go command, so a file behind any build tag is checked too.
//
// It does not judge style inside a file (the linters do) and does not look into nested modules, testdata, or folders whose
// name starts with a dot or an underscore.
package archtest
