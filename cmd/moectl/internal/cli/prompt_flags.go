package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// promptFlags collects --prompt and --prompt-ids in the order in which they were written.
type promptFlags struct{ entries []entry }

// promptFlag is one of the two flags.
type promptFlag struct {
	all  *promptFlags
	name string
	read func(string) (prompt, error)
}

// Set takes one more prompt. A faulty one is kept, so that all faults are named together.
func (f promptFlag) Set(text string) error {
	e := entry{where: fmt.Sprintf("prompt %d (--%s)", len(f.all.entries), f.name)}
	var err error
	if e.prompt, err = f.read(text); err != nil {
		e.err = e.fault(err)
	}
	f.all.entries = append(f.all.entries, e)
	return nil
}

// String returns nothing: there is no default.
func (f promptFlag) String() string { return "" }

// Type names the value in help.
func (f promptFlag) Type() string { return "text" }

// add makes the flags of a command.
func (f *promptFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(promptFlag{f, "prompt", func(text string) (prompt, error) { return prompt{text: text}, checkUTF8(text) }},
		"prompt", "`TEXT` to continue; may be repeated, one answer each")
	cmd.Flags().Var(promptFlag{f, "prompt-ids", func(text string) (prompt, error) {
		ids, err := parseIDs(text)
		return prompt{ids: ids}, err
	}}, "prompt-ids", "token `IDS` to continue, such as 0,466,700; may be repeated")
}

// parseIDs reads token ids parted by commas or blanks. An empty text gives an empty list.
func parseIDs(text string) ([]int32, error) {
	ids := []int32{}
	for i, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		id, err := strconv.ParseInt(field, 10, 32)
		if err != nil || id < 0 {
			return ids, fmt.Errorf("token %d: %q: must be a token id from 0 to %d", i, field, math.MaxInt32)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}
