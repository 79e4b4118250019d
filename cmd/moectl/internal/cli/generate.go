package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/moerack/moerack/internal/config"
)

// generateFlags are the flags that are no settings.
type generateFlags struct {
	prompts promptFlags
	file    string
	output  string

	fileGiven bool // file was written, if only as an empty text
}

func (a *app) generate() *cobra.Command {
	var flags generateFlags
	cmd := &cobra.Command{
		Use:   "generate --model DIR (--prompt TEXT … | --prompt-ids IDS … | --prompts-file FILE | -)",
		Short: "Continue prompts",
		Long: `Continue prompts and print the answers in the order of the prompts.

A line of a prompts file, or of standard input when the argument is "-", is one
JSON object:
  {"prompt": TEXT or [ids], "max_tokens", "temperature", "top_p", "top_k",
   "seed", "stop", "ignore_eos", "logprobs", "data_parallel_rank"}
All keys but "prompt" may be left out; flags are the defaults. Prompts given by
flags or in a file are checked whole before the model is loaded. On standard
input a faulty line is named and answered by an object with finish_reason
"error", and the others go on.

As text, one answer is written while it is made; several are written whole, each
under a line "--- N". Whether there are several is known of standard input once a
second line or its end is there, so the first answer appears no sooner. As JSON,
an object per answer is written as soon as all earlier ones are.

Ctrl-C ends the running requests and prints what they have; a second one ends at
once, and so does one before the model is loaded. A stats file keeps what it
holds until the model is.`,
		Example: `  moectl generate --model DIR --prompt "Once upon a time" --max-tokens 64
  moectl generate --model DIR --prompt-ids 0,466,700 --temperature 0 -o json
  moectl generate --model DIR --prompts-file prompts.jsonl -o json
  producer | moectl generate --model DIR - -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "-" {
				return usagef("argument %q: the only argument is - (standard input); give texts by --prompt", args[len(args)-1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runGenerate(cmd, flags, len(args) == 1)
		},
	}
	flags.prompts.add(cmd)
	cmd.Flags().StringVar(&flags.file, "prompts-file", "", "`FILE` of prompts, one JSON object a line")
	outputFlag(cmd, &flags.output)
	var names []string
	for _, key := range config.Keys() { // all settings are about generating
		names = append(names, key.Name)
	}
	settingFlags(cmd, names...)
	cmd.Flags().SortFlags = false
	return cmd
}

// runGenerate checks everything that can be checked, then loads the model and runs the prompts.
func (a *app) runGenerate(cmd *cobra.Command, flags generateFlags, stdin bool) error {
	settings, log, err := a.settings(cmd)
	faults := []error{err, checkOutput(flags.output)}
	if settings.Model == "" {
		faults = append(faults, usagef("no model: give --model DIR or --model org/name"))
	}
	backend, err := a.backend(settings.Device)
	faults = append(faults, err)
	flags.fileGiven = cmd.Flags().Changed("prompts-file")
	prompts, err := a.source(flags, stdin, settings.DataParallelSize)
	faults = append(faults, err)
	for _, e := range prompts.list {
		faults = append(faults, e.err)
	}
	written := errors.Join(faults...)
	if written != nil && settings.Model == "" {
		return usageError{written}
	}

	model, err := a.openModel(settings.Model, log)
	switch {
	case err != nil && written != nil: // what the user wrote comes first
		return usageError{written}
	case err != nil:
		return err
	}
	run := &generation{app: a, log: log, settings: settings, backend: backend, model: model, source: prompts, promptsFile: flags.file, output: flags.output}
	return run.do(cmd.Context(), written)
}
