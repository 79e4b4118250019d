package nn

import "fmt"

// OpError says in which op of a step's list a rank failed.
type OpError struct {
	Op  Op
	Err error
}

// Error names layer, op and cause.
func (e *OpError) Error() string {
	if e.Op.Layer < 0 {
		return fmt.Sprintf("%s: %v", e.Op.Name, e.Err)
	}
	return fmt.Sprintf("layer %d: %s: %v", e.Op.Layer, e.Op.Name, e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }
