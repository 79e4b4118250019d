package cli

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moerack/moerack/internal/config"
	"github.com/moerack/moerack/internal/logging"
	"github.com/moerack/moerack/model/sample"
)

// usages are the help texts of the settings that commands offer as flags, by key.
var usages = map[string]string{
	"model":                   "model `DIR`, or org/name in the local Hugging Face cache",
	"device":                  "backend `NAME` that computes",
	"data_parallel_size":      "engines `N`, each with its own requests",
	"tensor_parallel_size":    "ranks `N` over which each engine is cut",
	"enable_expert_parallel":  "spread the experts over all ranks of all engines, which then step together",
	"all2all_backend":         "`auto|allgather`: how rows reach the experts of other ranks",
	"dtype":                   "`auto|float32|bfloat16|w8a8`: number format of the weights; auto and float32 take them as stored, w8a8 is int8 with int8 dot products",
	"mla_prefill":             "`absorbed|expanded`: what prompts meet in latent attention: latents, or keys and values made from them, which long prompts are faster with",
	"cpu_devices":             "devices `N` of this host on backend cpu; each rank takes one",
	"threads":                 "threads `N` of each rank; 0: this host's processors shared by its ranks",
	"bind_threads":            "each helper thread keeps to a processor of its own; for a host that runs nothing else",
	"kernels_off":             "`NAMES` of instruction sets that are not to be used, with commas between them, to find out which one is at fault",
	"nats":                    "`URL` of the NATS server that carries the control plane; without it one runs inside the process and opens no port",
	"max_tokens":              "most tokens `N` of an answer",
	"temperature":             "`T` by which logits are divided; 0 takes the most probable token",
	"top_p":                   "keep the fewest tokens whose probabilities reach `P`",
	"top_k":                   "keep the `K` most probable tokens; 0 keeps all",
	"seed":                    "seed `S` of the random numbers; prompt i without a seed of its own gets S + i",
	"ignore_eos":              "an end-of-sequence token does not end the answer",
	"logprobs":                "give log-probabilities, also of the `K` most probable tokens; -1 gives none",
	"stop":                    "`TEXT` that ends the answer and is not part of it; may be repeated",
	"generation_config":       "`auto|vllm`: auto takes sampling defaults from the model's generation_config.json",
	"max_model_len":           "most positions `N` of prompt and answer; 0: what model and memory allow",
	"max_num_batched_tokens":  "most tokens `N` of a step",
	"max_num_seqs":            "most requests `N` that run at once",
	"block_size":              "positions `N` in a KV block",
	"num_gpu_blocks_override": "KV blocks `N`; 0: a quarter of free memory",
	"start_timeout":           "longest `TIME` without progress while the model loads",
	"stall_timeout":           "longest `TIME` that a rank may make no progress in a step before its group gives up; below about 1s a busy machine gives false alarms",
	"bus_timeout":             "longest `TIME` that steps wait for a NATS server that is away",
	"stats_file":              "write counters to `FILE` at the end",
	"log_level":               "least `LEVEL` that is logged: debug, info, warn or error",
	"log_format":              "`FORM` of the log: text or json",
}

// choices are the values that the shell completes, by key.
var choices = map[string][]string{
	"all2all_backend":   {config.Auto, config.AllGather},
	"dtype":             config.DTypes(),
	"mla_prefill":       {config.Absorbed, config.Expanded},
	"generation_config": {config.Auto, config.VLLM},
	"log_level":         {"debug", "info", "warn", "error"},
	"log_format":        {logging.Text, logging.JSON},
}

// settingFlag is a flag that only collects what was written; config reads all of them, and names all faults, at once.
type settingFlag struct {
	kind   config.Kind
	usual  string
	values []string
}

// Set takes any text.
func (f *settingFlag) Set(text string) error { f.values = append(f.values, text); return nil }

// String returns the default, for help.
func (f *settingFlag) String() string { return f.usual }

// Type returns the kind of value, for help.
func (f *settingFlag) Type() string { return string(f.kind) }

// settingFlags adds --config and the flags of the given settings to a command.
func settingFlags(cmd *cobra.Command, names ...string) {
	cmd.Flags().String("config", "", "YAML `FILE` with settings: the flags' names with underscores. MOE_ variables win over it, flags over both")
	for _, name := range names {
		key := config.Find(name)
		flag := cmd.Flags().VarPF(&settingFlag{kind: key.Kind, usual: key.Default()}, key.Flag(), "", usages[name])
		if key.Kind == config.Switch {
			flag.NoOptDefVal = "true"
		}
		if values, ok := choices[name]; ok {
			complete(cmd, key.Flag(), values...)
		}
	}
}

// settings reads file, variables and flags, and opens the log, which has the warnings by then. With an error the settings have
// defaults for what is faulty, so that other faults can be looked for; the log is there in any case.
func (a *app) settings(cmd *cobra.Command) (*config.Loaded, *slog.Logger, error) {
	given := map[string]any{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		flag, ok := f.Value.(*settingFlag)
		switch {
		case !ok:
		case flag.kind == config.List:
			given[config.KeyOf(f.Name)] = flag.values
		default:
			given[config.KeyOf(f.Name)] = flag.values[len(flag.values)-1]
		}
	})
	file, err := cmd.Flags().GetString("config")
	if err == nil && file == "" && cmd.Flags().Changed("config") {
		err = errors.New("--config: is empty, want the name of a YAML file")
	}
	loaded, loadErr := config.Load(config.Sources{File: file, Environ: a.Environ, Flags: given, Check: func(s config.Settings) config.Faults {
		s.Logprobs = sample.NoLogprobs // its limit is the vocabulary, which is not known before the model
		return samplingFaults(s, 0)
	}})
	log, logErr := a.logger(loaded)
	if err := errors.Join(err, loadErr, logErr); err != nil {
		return loaded, log, usageError{err}
	}
	return loaded, log, nil
}

// samplingFaults returns what model/sample refuses of the settings for a vocabulary of so many tokens.
func samplingFaults(s config.Settings, vocab int) config.Faults {
	var faults config.Faults
	for _, err := range (sample.Params{Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, Logprobs: s.Logprobs}).Validate(vocab) {
		key, problem, _ := strings.Cut(err.Error(), "=") // as in "top_p=2: must be above 0 and at most 1"
		faults = append(faults, config.Fault{Key: key, Problem: problem})
	}
	return faults
}

// logger returns the log of a command: lines on standard error, the first ones what the settings warn of.
func (a *app) logger(s *config.Loaded) (*slog.Logger, error) {
	level, levelErr := logging.ParseLevel(s.LogLevel)
	log, err := logging.New(a.Stderr, logging.Options{Level: level, Format: s.LogFormat, Color: a.color})
	if err := errors.Join(levelErr, err); err != nil {
		return slog.New(slog.DiscardHandler), err
	}
	for _, warning := range s.Warnings {
		log.Warn("settings", "warning", warning)
	}
	return log, nil
}
