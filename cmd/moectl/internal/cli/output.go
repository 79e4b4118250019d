package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
)

// The values of -o.
const (
	outputText = "text"
	outputJSON = "json"
)

// outputFlag adds -o to a command.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", outputText, "`FORM` of the result: text or json")
	complete(cmd, "output", outputText, outputJSON)
}

// checkOutput refuses a form that does not exist.
func checkOutput(output string) error {
	if output != outputText && output != outputJSON {
		return usagef("--output %q: must be text or json", output)
	}
	return nil
}

// complete offers the values of a flag to the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("cli: completion of --" + flag + ": " + err.Error()) // the flag was not added before
	}
}

// writeJSON writes one value on one line, with < > & as they are.
func writeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
