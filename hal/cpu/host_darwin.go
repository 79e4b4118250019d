package cpu

import (
	"golang.org/x/sys/unix"

	"github.com/moerack/moerack/hal"
)

// memory asks for the machine's size; darwin gives free pages only through Mach calls, so half of it counts as free.
func memory() (hal.Memory, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return hal.Memory{}, err
	}
	return hal.Memory{Free: int64(total / 2), Total: int64(total)}, nil
}

// processor returns the processor's brand.
func processor() string {
	s, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return "unknown processor"
	}
	return s
}
