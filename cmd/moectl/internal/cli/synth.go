package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moerack/moerack/model/synth"
	"github.com/moerack/moerack/model/weights"
)

// synthFlags are the flags of synth.
type synthFlags struct {
	shape, out, dtype string
	layers, vocab     int
	seed              uint64
	shard             string
	force             bool
	output            string
}

// synthesized is what synth prints.
type synthesized struct {
	Dir        string  `json:"dir"`
	Shape      string  `json:"shape"`
	Parameters int64   `json:"parameters"`
	Bytes      int64   `json:"bytes"` // of all tensors
	Files      int     `json:"files"` // with tensors
	Seconds    float64 `json:"seconds"`
}

func (a *app) synth() *cobra.Command {
	var flags synthFlags
	cmd := &cobra.Command{
		Use:   "synth --shape NAME --out DIR",
		Short: "Write a checkpoint with random weights",
		Long: `Write a checkpoint with random weights: the keys, widths and tensor names of a
published model, in bfloat16, float32 or FP8 with 128x128 blocks. It is for
measuring speed and memory; what it says means nothing. The numbers depend on
the seed alone, on every machine.

Shapes:
` + shapeList() + `
There is no tokenizer: give such a model token ids (generate --prompt-ids), or
copy the tokenizer files of a model with the same vocabulary into the directory.
With --vocab too small for the shape's BOS and EOS these become 0 and 1.

Files have names that end in .partial until all are there, config.json comes
last, and Ctrl-C removes what was made. --force writes into a directory that is
not empty, and replaces the checkpoint there when the new one is complete; until
then the disk holds both.`,
		Example: `  moectl synth --shape v2lite-4l --out /tmp/v2lite-4l
  moectl synth --shape v3 --layers 4 --dtype bfloat16 --out DIR
  moectl synth --shape tiny-v3 --out DIR && moectl generate --model DIR --prompt-ids 0,5,9`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSynth(cmd, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.shape, "shape", "", "`NAME` of the shape")
	f.StringVar(&flags.out, "out", "", "`DIR` to write to; it is made if it is not there")
	f.IntVar(&flags.layers, "layers", 0, "decoder layers `N`; 0: those of the shape")
	f.IntVar(&flags.vocab, "vocab", 0, "tokens `N` of the vocabulary; 0: those of the shape")
	f.StringVar(&flags.dtype, "dtype", "", "`bfloat16|float32|fp8`: how linear weights are stored (default as the model is published)")
	f.Uint64Var(&flags.seed, "seed", 0, "seed `S` of the random numbers")
	f.StringVar(&flags.shard, "max-shard-size", "5GB", "most `BYTES` of tensors in a file, such as 500MB or 2GiB")
	f.BoolVar(&flags.force, "force", false, "write into a directory that is not empty")
	outputFlag(cmd, &flags.output)
	complete(cmd, "shape", shapeNames()...)
	complete(cmd, "dtype", dtypeNames()...)
	settingFlags(cmd, "log_level", "log_format")
	f.SortFlags = false
	return cmd
}

// shapeList is a line for each shape.
func shapeList() string {
	var b strings.Builder
	for _, s := range synth.Shapes() {
		fmt.Fprintf(&b, "  %-12s %s (%s)\n", s.Name, s.About, s.DType)
	}
	return b.String()
}

func shapeNames() []string {
	var names []string
	for _, s := range synth.Shapes() {
		names = append(names, s.Name)
	}
	return names
}

func dtypeNames() []string {
	var names []string
	for _, d := range synth.DTypes() {
		names = append(names, string(d))
	}
	return names
}

func (a *app) runSynth(cmd *cobra.Command, flags synthFlags) error {
	_, log, err := a.settings(cmd)
	faults := []error{err, checkOutput(flags.output), quantizeFlags{out: flags.out, force: flags.force}.checkOut()}
	shard, err := parseBytes(flags.shard)
	if err != nil {
		faults = append(faults, usagef("--max-shard-size %q: %w", flags.shard, err))
	}
	checkpoint, err := flags.checkpoint()
	if err := errors.Join(append(faults, err)...); err != nil {
		return usageError{err}
	}
	a.watch.orderly.Store(true)
	to := weights.Target{Dir: flags.out, Force: flags.force, MaxShard: shard, Free: freeSpace}
	result, err := writeSynth(cmd.Context(), log, checkpoint, to)
	if err != nil {
		return err
	}
	result.Shape = flags.shape
	if flags.output == outputJSON {
		return writeJSON(a.Stdout, result)
	}
	return result.write(a.Stdout)
}

// checkpoint returns what is to be written, or the faults of the flags that describe it.
func (f synthFlags) checkpoint() (*synth.Checkpoint, error) {
	shape, ok := synth.Named(f.shape)
	switch {
	case f.shape == "":
		return nil, fmt.Errorf("no shape: give --shape %s", strings.Join(shapeNames(), "|"))
	case !ok:
		return nil, fmt.Errorf("--shape %q: must be %s", f.shape, strings.Join(shapeNames(), ", "))
	}
	return synth.New(synth.Options{Shape: shape, DType: synth.DType(f.dtype), Layers: f.layers, Vocab: f.vocab, Seed: f.seed})
}

// writeSynth writes it and logs how far it is.
func writeSynth(ctx context.Context, log *slog.Logger, c *synth.Checkpoint, to weights.Target) (synthesized, error) {
	start := time.Now()
	last := start
	log.Info("writing", "dir", to.Dir, "tensors", c.Tensors(), "parameters", c.Parameters(), "size", size(c.Bytes()))
	files, err := c.Write(ctx, to, func(done int64) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			rate := float64(done) / now.Sub(start).Seconds()
			log.Info("writing", "done", size(done), "of", size(c.Bytes()), "per_second", size(int64(rate)))
		}
	})
	return synthesized{Dir: to.Dir, Parameters: c.Parameters(), Bytes: c.Bytes(), Files: files, Seconds: time.Since(start).Seconds()}, err
}

func (s synthesized) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s, %d parameters, %s, files: %d, %.1f s\n", s.Dir, s.Shape, s.Parameters, size(s.Bytes), s.Files, s.Seconds)
	return err
}
