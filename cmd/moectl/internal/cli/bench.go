package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/moerack/moerack/internal/config"
)

// benchFlags are the flags of bench engine that are no settings.
type benchFlags struct {
	prompt, gen int
	batches     []int
	repeat      int
	output      string
}

// benchResult is what was measured with one number of sequences.
type benchResult struct {
	Batch          int     `json:"batch"`
	Prefill        float64 `json:"prefill_tokens_per_s"`
	Decode         float64 `json:"decode_tokens_per_s"`
	BytesPerToken  float64 `json:"bytes_per_token"` // that a decode step reads, over its tokens
	BandwidthShare float64 `json:"bandwidth_share"` // bytes per token × decode tokens per second, of the read bandwidth
}

// benchReport is what the command prints.
type benchReport struct {
	Results       []benchResult `json:"results"`
	ReadBandwidth float64       `json:"read_bandwidth"` // bytes per second
}

// benchSettings are the settings of an engine that the benchmark leaves to the user. The layout is one rank, and the sizes of the KV
// cache follow from the prompts.
func benchSettings() []string {
	var names []string
	for _, key := range config.Keys() {
		switch key.Name {
		case "data_parallel_size", "tensor_parallel_size", "enable_expert_parallel", "all2all_backend", "cpu_devices", "nats",
			"max_tokens", "temperature", "top_p", "top_k", "seed", "ignore_eos", "logprobs", "stop", "generation_config",
			"max_model_len", "max_num_seqs", "num_gpu_blocks_override", "stats_file":
		default:
			names = append(names, key.Name)
		}
	}
	return names
}

func (a *app) bench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure speed",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.benchEngine())
	return cmd
}

func (a *app) benchEngine() *cobra.Command {
	var flags benchFlags
	cmd := &cobra.Command{
		Use:   "engine --model DIR",
		Short: "Measure prefill and decode of one engine",
		Long: `Measure prefill and decode of one engine, the same that generate runs, on prompts of
random token ids. For each number of sequences it runs once to warm up, then
--repeat times, and gives the medians.

Prefill is the time until the last sequence has its first token, and its rate that of
prompt tokens. Decode begins there, and ends when every sequence has gen-len tokens
more; until then none ends, so that all steps have a row for each.

Bytes per token are those that a decode step has to read, over its tokens: weights
once, of the experts those that the rows were routed to, of the embedding a row for
each token; and the KV cache. Which experts a step reads is exact for one sequence;
for several it is what is to be expected of rows that choose by themselves, with the
frequencies of the run. The read bandwidth is that of as many threads that read a
buffer of 512 MiB, taken before and after each measurement.`,
		Example: `  moectl bench engine --model DIR --prompt-len 512 --gen-len 64 --batch 1,8,16
  moectl bench engine --model DIR --batch 1 --dtype w8a8 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runBenchEngine(cmd, flags) },
	}
	f := cmd.Flags()
	f.IntVar(&flags.prompt, "prompt-len", 512, "tokens `P` of a prompt")
	f.IntVar(&flags.gen, "gen-len", 64, "tokens `G` of each sequence that decode is measured over")
	f.IntSliceVar(&flags.batches, "batch", []int{1}, "numbers `B,…` of sequences at once, one measurement each")
	f.IntVar(&flags.repeat, "repeat", 3, "runs `N` of a measurement, of which the median counts")
	outputFlag(cmd, &flags.output)
	settingFlags(cmd, benchSettings()...)
	f.SortFlags = false
	return cmd
}

func (a *app) runBenchEngine(cmd *cobra.Command, flags benchFlags) error {
	settings, log, err := a.settings(cmd)
	backend, deviceErr := a.backend(settings.Device)
	faults := []error{err, checkOutput(flags.output), deviceErr, flags.check()}
	if settings.Model == "" {
		faults = append(faults, usagef("no model: give --model DIR or --model org/name"))
	}
	if err := errors.Join(faults...); err != nil {
		return usageError{err}
	}
	model, err := a.openModel(settings.Model, log)
	if err != nil {
		return err
	}
	settings.NATS, settings.StatsFile = "", "" // those of other commands
	b := &engineBench{generation: &generation{app: a, log: log, settings: settings, backend: backend, model: model}, flags: flags}
	var report benchReport
	err = b.do(cmd.Context(), func(ctx context.Context) (err error) {
		report, err = b.measure(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case flags.output == outputJSON:
		return writeJSON(a.Stdout, report)
	}
	return report.write(a.Stdout)
}

// check returns what is wrong with the flags by themselves.
func (f benchFlags) check() error {
	var faults []error
	atLeast1 := func(flag string, value int) {
		if value < 1 {
			faults = append(faults, fmt.Errorf("--%s %d: must be 1 or more", flag, value))
		}
	}
	atLeast1("prompt-len", f.prompt)
	atLeast1("gen-len", f.gen)
	atLeast1("repeat", f.repeat)
	if len(f.batches) == 0 {
		faults = append(faults, errors.New("--batch: is empty, want numbers of sequences such as 1,4,8"))
	}
	for _, batch := range f.batches {
		atLeast1("batch", batch)
	}
	return errors.Join(faults...)
}

// write prints the report as a table.
func (r benchReport) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "batch\tprefill tokens/s\tdecode tokens/s\tbytes/token\tof the bandwidth\t")
	for _, m := range r.Results {
		fmt.Fprintf(t, "%d\t%.1f\t%.1f\t%s\t%.1f %%\t\n", m.Batch, m.Prefill, m.Decode, size(int64(m.BytesPerToken)), 100*m.BandwidthShare)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "read bandwidth: %s/s\n", size(int64(r.ReadBandwidth)))
	return err
}

// median sorts values, of which there is one at least, and returns the middle one or the mean of the two.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
