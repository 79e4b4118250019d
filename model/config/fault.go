package config

import (
	"fmt"
	"strings"
)

// Fault is one thing in a model directory that cannot be loaded.
type Fault struct {
	Path  string // the file that shows it
	Key   string // the key in that file, dotted for nested ones; "" for the file itself
	Found string // the value as JSON, shortened; "" for the file itself
	Want  string // what is legal, or what to do
}

// String gives `key=value: what is legal`.
func (f Fault) String() string {
	switch {
	case f.Key == "":
		return f.Want
	case f.Found == "":
		return f.Key + ": " + f.Want
	default:
		return f.Key + "=" + f.Found + ": " + f.Want
	}
}

// Error lists everything wrong with a model directory at once.
type Error struct {
	Faults []Fault // at least one, in the order found
}

// Error names each file once, followed by its faults.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("config:")
	if len(e.Faults) > 1 {
		fmt.Fprintf(&text, " %d faults:", len(e.Faults))
	}
	last := ""
	for i, f := range e.Faults {
		if i > 0 {
			text.WriteString(";")
		}
		if f.Path != last {
			text.WriteString(" " + f.Path + ":")
			last = f.Path
		}
		text.WriteString(" " + f.String())
	}
	return text.String()
}

// report collects faults and warnings while a directory is read.
type report struct {
	faults   []Fault
	warnings []string
}

func (r *report) fault(path, key, found, want string) {
	r.faults = append(r.faults, Fault{Path: path, Key: key, Found: found, Want: want})
}

func (r *report) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

func (r *report) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return &Error{Faults: r.faults}
}
