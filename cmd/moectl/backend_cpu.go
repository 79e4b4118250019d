package main

import (
	"github.com/moerack/moerack/cmd/moectl/internal/cli"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
)

// cpuBackend computes on the host's cores. It is always there.
var cpuBackend = cli.Backend{
	Name: "cpu",
	Open: func(index int) (hal.Device, error) { return cpu.Open(cpu.Options{Index: index}) },
}
