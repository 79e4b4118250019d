package hal

import (
	"errors"
	"fmt"
)

// Class says what an error means for whoever supervises the rank.
type Class uint8

// The classes. The zero value is no class.
const (
	Transient   Class = iota + 1 // the same work may succeed when repeated
	DeviceLost                   // the device is gone or its state is unknown: close it and open it anew
	CallerFault                  // the call was wrong (shape, type, range, closed device); repeating it changes nothing
	Aborted                      // the work was given up, with its group's communicator or by who wanted it; the device is well, the cause is elsewhere
)

// String returns the class in words.
func (c Class) String() string {
	switch c {
	case Transient:
		return "transient"
	case DeviceLost:
		return "device lost"
	case CallerFault:
		return "caller's fault"
	case Aborted:
		return "aborted"
	default:
		return fmt.Sprintf("Class(%d)", uint8(c))
	}
}

// Error is what every backend returns.
type Error struct {
	Op     string // the operation: "MatMul", "Alloc", …
	Device string // the device's name
	Class  Class
	Code   int    // the vendor's code, 0 if there is none
	Detail string // cause and, where possible, what to do
	Err    error  // wrapped cause, may be nil
}

// Error returns device, operation, detail, vendor code and class on one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %s", e.Device, e.Op, e.Detail)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Code != 0 {
		s += fmt.Sprintf(" (code %d)", e.Code)
	}
	return s + " [" + e.Class.String() + "]"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of the first hal error in err's chain, 0 if there is none.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return 0
}
