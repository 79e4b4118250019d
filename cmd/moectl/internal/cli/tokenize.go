package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/token"
)

// tokenizeFlags are the flags of tokenize that are no settings.
type tokenizeFlags struct {
	decode    string
	chat      string
	noSpecial bool
	output    string
}

// tokens is what tokenize prints.
type tokens struct {
	IDs    []int32  `json:"ids"`
	Tokens []string `json:"tokens"` // as tokenizer.json spells them
	Text   string   `json:"text"`
}

func (a *app) tokenize() *cobra.Command {
	var flags tokenizeFlags
	cmd := &cobra.Command{
		Use:   "tokenize --model DIR (TEXT | --decode IDS | --chat FILE | -)",
		Short: "Show a text as tokens, or tokens as text",
		Long: `Show a text as tokens, or tokens as text. The text is the argument, or all of
standard input when the argument is "-". It gets the tokenizer's BOS as its
configuration says, also if it begins with one.

--chat takes a JSON list of messages, or an object {"messages": [...],
"tools": [...], "add_generation_prompt": true or false}, and shows what the
model's chat template makes of it (many take no notice of tools); the template
writes BOS itself, so none is added.`,
		Example: `  moectl tokenize --model DIR "Hello, world"
  moectl tokenize --model DIR --decode 0,42,420,81
  moectl tokenize --model DIR --chat messages.json -o json
  moectl tokenize --model DIR - < text.txt`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTokenize(cmd, flags, args) },
	}
	cmd.Flags().StringVar(&flags.decode, "decode", "", "token `IDS` to turn into text, such as 0,42,420")
	cmd.Flags().StringVar(&flags.chat, "chat", "", "`FILE` with the messages of a conversation as JSON")
	cmd.Flags().BoolVar(&flags.noSpecial, "no-special", false, "add no special tokens; with --decode, leave them out of the text")
	outputFlag(cmd, &flags.output)
	settingFlags(cmd, "model", "log_level", "log_format")
	cmd.Flags().SortFlags = false
	return cmd
}

func (a *app) runTokenize(cmd *cobra.Command, flags tokenizeFlags, args []string) error {
	settings, _, err := a.settings(cmd)
	err = errors.Join(err, checkOutput(flags.output), checkTokenizeInput(cmd, args))
	if settings.Model == "" {
		err = errors.Join(err, usagef("no model: give --model DIR or --model org/name"))
	}
	if err != nil {
		return usageError{err}
	}
	dir, err := modelconfig.Resolve(settings.Model, a.getenv)
	if err != nil {
		return err
	}
	tokenizer, err := token.Load(dir)
	if err != nil {
		return err
	}
	var result tokens
	switch {
	case cmd.Flags().Changed("decode"):
		result, err = decodeIDs(tokenizer, flags.decode, flags.noSpecial)
	case cmd.Flags().Changed("chat"):
		result, err = encodeChat(tokenizer, dir, flags.chat)
	default:
		result.Text, err = a.textArgument(args[0])
		result.IDs = tokenizer.Encode(result.Text, !flags.noSpecial)
	}
	if err != nil {
		return err
	}
	result.IDs = append([]int32{}, result.IDs...) // a list also when it is empty
	result.Tokens = make([]string, len(result.IDs))
	for i, id := range result.IDs {
		result.Tokens[i] = tokenizer.Piece(id)
	}
	if flags.output == outputJSON {
		return writeJSON(a.Stdout, result)
	}
	return result.write(a.Stdout)
}

func checkTokenizeInput(cmd *cobra.Command, args []string) error {
	ways := len(args)
	for _, flag := range []string{"decode", "chat"} {
		if cmd.Flags().Changed(flag) {
			ways++
		}
	}
	switch {
	case ways == 0:
		return usagef("nothing to show: give a text, --decode, --chat or -")
	case len(args) > 1:
		return usagef("%d arguments: put the text in quotes", len(args))
	case ways > 1:
		return usagef("a text, --decode, --chat and - exclude one another")
	}
	return nil
}

// textArgument returns the text, or standard input for "-".
func (a *app) textArgument(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.Stdin, maxLine+1))
	switch {
	case err != nil:
		return "", usagef("standard input: cannot be read: %w", err)
	case len(data) > maxLine:
		return "", usagef("standard input: %w", errLongLine)
	}
	return string(data), nil
}

func decodeIDs(t *token.Tokenizer, text string, skipSpecial bool) (tokens, error) {
	ids, err := parseIDs(text)
	if err != nil {
		return tokens{}, usagef("--decode: %w", err)
	}
	var faults []error
	for i, id := range ids {
		if int(id) >= t.VocabSize() {
			faults = append(faults, fmt.Errorf("--decode: token %d: id %d is outside the vocabulary: must be from 0 to %d", i, id, t.VocabSize()-1))
		}
	}
	if len(faults) > 0 {
		return tokens{}, usageError{errors.Join(faults...)}
	}
	return tokens{IDs: ids, Text: t.Decode(ids, skipSpecial)}, nil
}

// write prints a table for people: one token a line, then the text in quotes.
func (t tokens) write(w io.Writer) error {
	var b strings.Builder
	for i, id := range t.IDs {
		fmt.Fprintf(&b, "%7d  %s\n", id, t.Tokens[i])
	}
	fmt.Fprintf(&b, "%d tokens: %q\n", len(t.IDs), t.Text)
	_, err := io.WriteString(w, b.String())
	return err
}
