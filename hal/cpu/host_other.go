//go:build !linux && !darwin

package cpu

import (
	"errors"

	"github.com/moerack/moerack/hal"
)

// memory is not known here.
func memory() (hal.Memory, error) {
	return hal.Memory{}, errors.New("free memory is not read on this system")
}

// processor is not known here.
func processor() string { return "unknown processor" }
