package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/moerack/moerack/internal/readfile"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/token"
)

// perplexityFlags are the flags of perplexity that are no settings.
type perplexityFlags struct {
	file    string
	context int
	stride  int
	output  string
}

// perplexity is what the command prints.
type perplexity struct {
	File    string  `json:"file"`
	Tokens  int     `json:"tokens"` // scored
	NLL     float64 `json:"nll"`    // mean negative log-likelihood, nats a token
	PPL     float64 `json:"ppl"`    // e to the power of it
	Context int     `json:"ctx_size"`
	Stride  int     `json:"stride"`
	Windows int     `json:"windows"`
	Rows    int     `json:"rows"` // computed: tokens of all windows
	Seconds float64 `json:"seconds"`
}

// maxTextFile bounds the text, in bytes.
const maxTextFile = 256 << 20

func (a *app) perplexity() *cobra.Command {
	var flags perplexityFlags
	cmd := &cobra.Command{
		Use:   "perplexity --model DIR --file TEXT",
		Short: "Measure how well a model predicts a text",
		Long: `Measure how well a model predicts a text: the mean negative log-likelihood of its
tokens in nats, and e to the power of it. Lower is better. It compares number
formats of one model; models with different tokenizers have different tokens.

The text is read in windows of ctx-size positions, each of which begins as a prompt
does (with BOS, if the tokenizer adds it) and is computed by itself. Every token is
scored once, by the first window that has it: with all that precedes it there. The
next window begins stride tokens later, so the smaller the stride, the more
precedes each token, and the longer it takes.`,
		Example: "  moectl perplexity --model DIR --file text.txt\n  moectl perplexity --model DIR --file text.txt --ctx-size 1024 --stride 512 -o json\n  moectl perplexity --model DIR --file text.txt --dtype w8a8",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runPerplexity(cmd, flags) },
	}
	cmd.Flags().StringVar(&flags.file, "file", "", "`TEXT` file, UTF-8")
	cmd.Flags().IntVar(&flags.context, "ctx-size", 512, "positions `N` of a window")
	cmd.Flags().IntVar(&flags.stride, "stride", 0, "tokens `N` from one window to the next; 0: as many as a window has, so that none is computed twice")
	outputFlag(cmd, &flags.output)
	settingFlags(cmd, "model", "device", "dtype", "threads", "kernels_off", "log_level", "log_format")
	cmd.Flags().SortFlags = false
	return cmd
}

func (a *app) runPerplexity(cmd *cobra.Command, flags perplexityFlags) error {
	settings, log, err := a.settings(cmd)
	backend, deviceErr := a.backend(settings.Device)
	faults := []error{err, checkOutput(flags.output), deviceErr, flags.check(), backend.checkKernels(compute(settings.Settings, 1))}
	if settings.Model == "" {
		faults = append(faults, usagef("no model: give --model DIR or --model org/name"))
	}
	text, err := flags.text()
	if err := errors.Join(append(faults, err)...); err != nil {
		return usageError{err}
	}
	model, err := a.openModel(settings.Model, log)
	if err != nil {
		return err
	}
	if model.form, err = nn.DType(settings.DType).Form(model.config); err != nil {
		return usageError{err}
	}
	switch most := model.config.MaxPositionEmbeddings; {
	case model.tokenizer == nil:
		return fmt.Errorf("%s: a text needs a tokenizer: %w", model.dir, model.tokenizerErr)
	case flags.context > most:
		return usagef("--ctx-size %d: the model has %d positions (max_position_embeddings)", flags.context, most)
	}
	lead, tokens := leadAndText(model.tokenizer, text)
	list, err := windows(len(lead), len(tokens), flags.context, flags.stride)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", flags.file, err)}
	}

	a.watch.orderly.Store(true)
	ctx := cmd.Context()
	start := time.Now()
	last := start
	result, err := scoreText(ctx, backend, compute(settings.Settings, 1), model, lead, tokens, list, func(windows int, soFar likelihood) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			log.Info("scoring", "window", windows, "of", len(list), "tokens", soFar.tokens, "ppl", fmt.Sprintf("%.3f", soFar.perplexity()))
		}
	})
	switch {
	case interrupted(ctx):
		return errInterrupted
	case err != nil:
		return err
	}
	p := perplexity{
		File: flags.file, Tokens: result.tokens, NLL: result.mean(), PPL: result.perplexity(),
		Context: flags.context, Stride: list[0].stride, Windows: len(list), Rows: result.rows, Seconds: time.Since(start).Seconds(),
	}
	if math.IsInf(p.PPL, 0) {
		return fmt.Errorf("%s: a perplexity of e^%.0f is no number: the model gives a token of the text no chance", model.dir, p.NLL)
	}
	if flags.output == outputJSON {
		return writeJSON(a.Stdout, p)
	}
	return p.write(a.Stdout)
}

// check returns what is wrong with the flags by themselves.
func (f perplexityFlags) check() error {
	var faults []error
	if f.context < 2 {
		faults = append(faults, fmt.Errorf("--ctx-size %d: must be 2 or more", f.context))
	}
	if f.stride < 0 {
		faults = append(faults, fmt.Errorf("--stride %d: must be 1 or more, or 0 for as many tokens as a window has", f.stride))
	}
	return errors.Join(faults...)
}

// text reads the file.
func (f perplexityFlags) text() (string, error) {
	if f.file == "" {
		return "", errors.New("no text: give --file TEXT")
	}
	data, err := readfile.Regular(f.file, maxTextFile)
	switch {
	case err != nil:
		return "", fmt.Errorf("--file: %w", err)
	case !utf8.Valid(data):
		return "", fmt.Errorf("--file %s: is no UTF-8 text", f.file)
	}
	return string(data), nil
}

// leadAndText returns what the tokenizer puts before a text, BOS or nothing, and the text without it, also where it is written out
// there.
func leadAndText(t *token.Tokenizer, text string) (lead, tokens []int32) {
	bare, full := t.Encode(text, false), t.Encode(text, true)
	for n := range len(full) - len(bare) + 1 {
		if slices.Equal(full[n:n+len(bare)], bare) {
			lead = full[:n:n]
			break
		}
	}
	if len(lead) > 0 && len(bare) >= len(lead) && slices.Equal(bare[:len(lead)], lead) {
		bare = bare[len(lead):]
	}
	return lead, bare
}

func (p perplexity) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %d tokens, %.4f nats a token, perplexity %.4f (windows of %d, stride %d, %.1f s)\n", p.File, p.Tokens, p.NLL, p.PPL, p.Context, p.Stride, p.Seconds)
	return err
}
