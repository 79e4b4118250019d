package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moerack/moerack/internal/version"
)

func (a *app) version() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say which build this is",
		Example: "  moectl version\n  moectl version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if output == outputJSON {
				return writeJSON(a.Stdout, version.Get())
			}
			_, err := fmt.Fprintln(a.Stdout, "moectl", version.Get())
			return err
		},
	}
	outputFlag(cmd, &output)
	return cmd
}
