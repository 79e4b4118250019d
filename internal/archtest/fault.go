package archtest

import "fmt"

// Fault is one departure from the tables.
type Fault struct {
	Where string // file or folder, slash-separated, relative to the repository root
	What  string // what was found
	Fix   string // the rule behind it, or what to do
}

// String returns the fault as one line: where, what, and the way out.
func (f Fault) String() string { return fmt.Sprintf("%s: %s: %s", f.Where, f.What, f.Fix) }
