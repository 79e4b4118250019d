package config

import "strings"

// Fault is one setting that cannot be used.
type Fault struct {
	Key     string // the setting's key, as in a file
	Source  string // how the user wrote the key and where; "" if nobody wrote it
	Problem string // the value, what is wrong with it, and what is legal
}

// Error returns for example `moe.yaml: top_p=2: must be more than 0 and at most 1`.
func (f Fault) Error() string {
	if f.Source == "" {
		return f.Key + "=" + f.Problem
	}
	return f.Source + "=" + f.Problem
}

// Faults are all faults of one reading. It is an error if it is not empty.
type Faults []Fault

// Error returns one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}
