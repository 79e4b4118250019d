package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moerack/moerack/internal/config"
	"github.com/moerack/moerack/internal/logging"
)

// app is one run of the command line.
type app struct {
	Host
	command string // the command that runs, as in "moectl generate"
	started bool   // its flags and arguments were understood
	watch   *watch // of signals
	color   bool   // standard error takes colours
}

// Run runs the command that h.Args names, prints what went wrong to h.Stderr and returns the exit code. It blocks until the
// command has ended.
func Run(h Host) int {
	color := logging.Color(h.Stderr, h.getenv)
	h.Stderr = &lockedWriter{to: h.Stderr}
	out := &keptError{to: h.Stdout}
	h.Stdout = out
	ctx, watch, stop := h.interruptible()
	defer stop()
	a := &app{Host: h, command: "moectl", watch: watch, color: color}
	err := a.execute(ctx)
	if err == nil && out.err != nil { // a help text: nobody asks what becomes of it
		a.started, err = true, fmt.Errorf("standard output: %w", out.err)
	}
	if err != nil && !a.started {
		err = usageError{a.warned(err)}
	}
	a.report(err)
	return exitCode(err)
}

// warned logs what the environment's variables warn of, which may explain err, and returns err.
func (a *app) warned(err error) error {
	_, logErr := a.logger(&config.Loaded{Settings: config.Defaults(), Warnings: config.Warnings(a.Environ)})
	return errors.Join(err, logErr)
}

func (a *app) execute(ctx context.Context) error {
	root := a.root()
	root.SetArgs(append([]string{}, a.Args...)) // cobra takes nil for the process's own arguments
	cmd, err := root.ExecuteContextC(ctx)
	a.command = cmd.CommandPath() // also when it did not get as far as to run
	return err
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "moectl",
		Short: "Run mixture-of-experts language models of the DeepSeek architecture",
		Long: `moectl runs mixture-of-experts language models of the DeepSeek architecture
(DeepSeek-V2-Lite, V2, V3/R1 and their kin) and looks into them.

Results go to standard output, progress and logs to standard error.
Exit codes: 0; 2 for flags, configuration and prompts; 1 for the model's files
and everything later; 130 interrupted.`,
		SilenceUsage:     true,
		SilenceErrors:    true,
		PersistentPreRun: func(*cobra.Command, []string) { a.started = true },
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout) // before the completion command, which keeps what it finds
	root.SetErr(a.Stderr)
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.generate(), a.tokenize(), a.doctor(), a.quantize(), a.synth(), a.perplexity(), a.bench(), a.version())
	root.SetHelpCommand(a.help(root))
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		// Without these an unknown shell would show the help and be no error.
		completion.Args = cobra.NoArgs
		completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	return root
}

// help replaces cobra's own, which takes an unknown command for no error.
func (a *app) help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Show the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return usageError{err}
			}
			if len(rest) > 0 {
				return usagef("unknown command %q for %q", rest[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
}

// flagError adds to an unknown flag the known one that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := config.Nearest(strings.ReplaceAll(unknown.GetSpecifiedName(), "_", "-"), names); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// report prints err to standard error, each of its lines behind the program's name.
func (a *app) report(err error) {
	if err = unreported(err); err == nil || errors.Is(err, syscall.EPIPE) {
		return // nothing to say, or nobody listens
	}
	a.complain(err)
	if exitCode(err) == exitUsage {
		fmt.Fprintf(a.Stderr, "see %q\n", a.command+" --help")
	}
}

// complain prints one message to standard error.
func (a *app) complain(err error) {
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			fmt.Fprintf(a.Stderr, "moectl: %s\n", line)
		}
	}
}
