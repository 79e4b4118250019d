package cli

import (
	"errors"
	"fmt"
)

// Exit codes of all commands.
const (
	exitOK          = 0
	exitFailure     = 1   // the model's files and everything later
	exitUsage       = 2   // flags, configuration, prompts
	exitInterrupted = 130 // a signal, as shells count SIGINT
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// usageError is a fault of what the user wrote: flags, configuration or prompts.
type usageError struct{ error }

// Unwrap returns the fault.
func (e usageError) Unwrap() error { return e.error }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// reportedError ends a command whose faults have been printed already.
type reportedError struct{ code int }

// Error names the code; it is never printed.
func (e reportedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// unreported returns the part of err that has not been printed.
func unreported(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, part := range joined.Unwrap() {
			rest = append(rest, unreported(part))
		}
		return errors.Join(rest...)
	}
	if errors.As(err, new(reportedError)) {
		return nil
	}
	return err
}

// exitCode returns the code for what a command returned.
func exitCode(err error) int {
	var reported reportedError
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted): // whatever else went wrong on the way out
		return exitInterrupted
	case errors.As(err, &reported):
		return reported.code
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitFailure
	}
}
