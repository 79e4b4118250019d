package main

import (
	"github.com/moerack/moerack/cmd/moectl/internal/cli"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
)

// cpuBackend computes on the host's cores. It is always there.
var cpuBackend = cli.Backend{
	Name: "cpu",
	Open: func(index int, c cli.Compute) (hal.Device, error) {
		return cpu.Open(cpu.Options{Index: index, Devices: c.Ranks, Threads: c.Threads, Bind: c.Bind, Off: c.KernelsOff})
	},
	Check: cpu.CheckKernels,
}
