package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	modelconfig "github.com/moerack/moerack/model/config"
)

// status is how a finding is judged.
type status string

// The statuses. Only broken makes doctor fail.
const (
	good   status = "ok"
	notice status = "warn"
	broken status = "FAIL"
)

// finding is one line of doctor.
type finding struct {
	Subject string `json:"subject"`
	Status  status `json:"status"`
	Detail  string `json:"detail"`
}

// report is what doctor prints.
type report struct {
	Findings []finding `json:"findings"`
	Broken   int       `json:"broken"` // findings with status FAIL
}

func (r *report) addf(s status, subject, format string, args ...any) {
	r.Findings = append(r.Findings, finding{Subject: subject, Status: s, Detail: fmt.Sprintf(format, args...)})
	if s == broken {
		r.Broken++
	}
}

func (a *app) doctor() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "doctor [--model DIR]",
		Short: "Check this machine, and a model's files",
		Long: `Check what this machine offers: processor, kernels, cores, memory, backends.
With --model also read the whole checkpoint: configuration, every tensor that the
network needs with its shape, numbers that are NaN or infinite, tokenizer and chat
template, tensors that nothing uses. One finding a line; exit code 1 if one is FAIL.`,
		Example: "  moectl doctor\n  moectl doctor --model DIR\n  moectl doctor --model DIR -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd, output) },
	}
	outputFlag(cmd, &output)
	settingFlags(cmd, "model", "device", "log_level", "log_format")
	cmd.Flags().SortFlags = false
	return cmd
}

func (a *app) runDoctor(cmd *cobra.Command, output string) error {
	settings, _, err := a.settings(cmd)
	backend, deviceErr := a.backend(settings.Device)
	if err := errors.Join(err, checkOutput(output), deviceErr); err != nil {
		return usageError{err}
	}
	r := &report{}
	r.machine(a.Backends)
	if settings.Model != "" {
		dir, err := modelconfig.Resolve(settings.Model, a.getenv)
		if err != nil {
			return err
		}
		r.model(cmd.Context(), dir, backend)
	}
	if err := r.print(a.Stdout, output); err != nil {
		return err
	}
	if r.Broken > 0 {
		return reportedError{exitFailure}
	}
	return nil
}

func (r *report) print(w io.Writer, output string) error {
	if output == outputJSON {
		return writeJSON(w, r)
	}
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-4s  %-13s %s\n", f.Status, f.Subject, strings.ReplaceAll(f.Detail, "\n", "; "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
