package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/weights"
)

// quantizeFlags are the flags of quantize that are no settings.
type quantizeFlags struct {
	out    string
	shard  string
	force  bool
	output string
}

// quantized is what quantize prints.
type quantized struct {
	Dir         string  `json:"dir"`
	Files       int     `json:"files"` // of tensors
	Tensors     int     `json:"tensors"`
	Int8        int     `json:"int8_matrices"`
	SourceBytes int64   `json:"source_bytes"` // of the tensors that were used
	Bytes       int64   `json:"bytes"`
	Seconds     float64 `json:"seconds"`
}

func (a *app) quantize() *cobra.Command {
	var flags quantizeFlags
	cmd := &cobra.Command{
		Use:   "quantize --model DIR --out DIR",
		Short: "Write a checkpoint with int8 weights",
		Long: `Write a model's checkpoint with int8 weights, for dot products of int8 (w8a8): the
same weights that --dtype w8a8 makes of the original at every start, which the new
checkpoint maps without work. Matrices of linear layers become int8, each row with a
float32 scale; the embedding and the up-projection of keys become bfloat16; router
and norms stay as they are. MTP modules are left out.

Tokenizer, chat template and other small files are copied. The directory must be
empty or new, unless --force replaces the checkpoint in it. Files get their names
when all are complete, config.json last; an interrupt leaves nothing.`,
		Example: "  moectl quantize --model DIR --out DIR-w8a8\n  moectl generate --model DIR-w8a8 --prompt \"Hello\"",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runQuantize(cmd, flags) },
	}
	cmd.Flags().StringVar(&flags.out, "out", "", "`DIR` for the new checkpoint")
	cmd.Flags().StringVar(&flags.shard, "max-shard-size", "5GB", "most `BYTES` of tensors in a file, such as 500MB or 2GiB")
	cmd.Flags().BoolVar(&flags.force, "force", false, "replace the checkpoint in a directory that is not empty")
	outputFlag(cmd, &flags.output)
	settingFlags(cmd, "model", "log_level", "log_format")
	cmd.Flags().SortFlags = false
	return cmd
}

func (a *app) runQuantize(cmd *cobra.Command, flags quantizeFlags) error {
	settings, log, err := a.settings(cmd)
	maxShard, shardErr := parseBytes(flags.shard)
	if shardErr != nil {
		err = errors.Join(err, usagef("--max-shard-size %q: %w", flags.shard, shardErr))
	}
	err = errors.Join(err, checkOutput(flags.output), flags.checkOut())
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
	if sameDirectory(dir, flags.out) {
		return usagef("--out %s is the model's own directory: name another one", flags.out)
	}
	a.watch.orderly.Store(true)
	result, err := quantizeModel(cmd.Context(), log, dir, weights.Target{Dir: flags.out, Force: flags.force, MaxShard: maxShard, Free: freeSpace})
	if err != nil {
		return err
	}
	if flags.output == outputJSON {
		return writeJSON(a.Stdout, result)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s: %d tensors, %d of them int8, %s instead of %s, %d files, %.1f s\n",
		result.Dir, result.Tensors, result.Int8, size(result.Bytes), size(result.SourceBytes), result.Files, result.Seconds)
	return err
}

// checkOut refuses a directory that cannot be written to.
func (f quantizeFlags) checkOut() error {
	if f.out == "" {
		return usagef("no directory for the new checkpoint: give --out DIR")
	}
	entries, err := os.ReadDir(f.out)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usagef("--out: %w", err)
	case len(entries) > 0 && !f.force:
		return usagef("--out %s is not empty (it has %s): name another directory, or give --force to replace the checkpoint in it", f.out, entries[0].Name())
	}
	return nil
}

func sameDirectory(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// quantizeModel writes the checkpoint. When ctx ends it leaves nothing and returns the cause.
func quantizeModel(ctx context.Context, log *slog.Logger, dir string, to weights.Target) (result quantized, err error) {
	begin := time.Now()
	config, err := modelconfig.Load(dir)
	if err != nil {
		return result, err
	}
	pieces, err := deepseek.Quantized(config)
	if err != nil {
		return result, fmt.Errorf("%s: %w", dir, err)
	}
	checkpoint, err := weights.Open(dir)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, checkpoint.Close()) }()
	q := &quantizer{log: log, checkpoint: checkpoint, result: quantized{Dir: to.Dir}}
	if err := q.plan(pieces); err != nil {
		return result, err
	}
	q.warnDropped()
	if q.writer, err = weights.NewWriter(to, q.entries); err != nil {
		return result, err
	}
	if err := mapped(func() error { return q.write(ctx) }); err != nil {
		return result, q.writer.Discard(err)
	}
	if err := q.copyFiles(dir); err != nil {
		return result, q.writer.Discard(err)
	}
	if ctx.Err() != nil {
		return result, q.writer.Discard(context.Cause(ctx))
	}
	if err := q.writer.Commit(); err != nil {
		return result, err
	}
	q.result.Files, q.result.Bytes, q.result.Seconds = q.writer.Shards(), q.writer.Bytes(), time.Since(begin).Seconds()
	return q.result, nil
}

// besides lists the files that go with a model's weights: neither weights nor their configuration.
func besides(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		info, err := os.Stat(filepath.Join(dir, name)) // what a link in a cache of downloads leads to
		if err != nil || !info.Mode().IsRegular() || info.Size() > mostBeside || weightFile(name) {
			continue
		}
		names = append(names, name)
	}
	return names, nil
}
