// Command moectl runs mixture-of-experts language models of the DeepSeek architecture and looks into them. It names the
// backends that this binary has; everything else is in internal/cli and the packages of the module.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/moerack/moerack/cmd/moectl/internal/cli"
)

func main() {
	// Two places: the second signal must not be lost while the first is being answered.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// A reader that goes away is a write error, after which the command ends in order, not a signal that kills it.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(cli.Run(cli.Host{
		Args:     os.Args[1:],
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Environ:  os.Environ(),
		Signals:  signals,
		Exit:     os.Exit,
		Backends: []cli.Backend{cpuBackend},
	}))
}
