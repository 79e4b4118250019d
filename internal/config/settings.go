// Package config reads what a user set: defaults, then a YAML file, then MOE_ variables, then flags, the later ones winning.
// It owns the names, defaults and limits of the settings; what a setting means to a part is that part's matter, its limits too
// where the part checks them itself (Sources.Check), and nothing of ours is imported.
package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settings are the values in effect. The koanf tag is the key in a file; the flag has dashes for underscores, the variable
// is MOE_ and capitals.
type Settings struct {
	Model  string `koanf:"model"`  // directory, or org/name in the local Hugging Face cache
	Device string `koanf:"device"` // backend that opens the devices

	DataParallelSize     int    `koanf:"data_parallel_size"`     // engines
	TensorParallelSize   int    `koanf:"tensor_parallel_size"`   // ranks of an engine
	EnableExpertParallel bool   `koanf:"enable_expert_parallel"` // the experts are spread over all ranks
	All2AllBackend       string `koanf:"all2all_backend"`        // Auto or AllGather
	DType                string `koanf:"dtype"`                  // number format of weights: one of DTypes
	MLAPrefill           string `koanf:"mla_prefill"`            // how rows of prompts attend: Absorbed or Expanded
	CPUDevices           int    `koanf:"cpu_devices"`            // devices of this host on backend cpu
	Threads              int    `koanf:"threads"`                // of a rank, 0: the host's processors shared by its ranks
	BindThreads          bool   `koanf:"bind_threads"`           // each helper thread keeps to a processor
	KernelsOff           string `koanf:"kernels_off"`            // instruction sets that are not used, with commas between them
	NATS                 string `koanf:"nats"`                   // URL of the server that is the bus, empty: one inside the process

	MaxTokens        int      `koanf:"max_tokens"`        // most tokens of an answer, ≥ 0
	Temperature      float32  `koanf:"temperature"`       // 0 is greedy
	TopP             float32  `koanf:"top_p"`             // 1 keeps all tokens
	TopK             int      `koanf:"top_k"`             // 0 or −1 is off
	Seed             uint64   `koanf:"seed"`              // of the first prompt; prompt i gets seed + i
	IgnoreEOS        bool     `koanf:"ignore_eos"`        // EOS tokens do not end an answer
	Logprobs         int      `koanf:"logprobs"`          // tokens to list for each position, −1 is none at all
	Stop             []string `koanf:"stop"`              // texts that end an answer
	GenerationConfig string   `koanf:"generation_config"` // Auto or VLLM

	MaxModelLen          int           `koanf:"max_model_len"`           // positions of a sequence, 0: what model and memory allow
	MaxNumBatchedTokens  int           `koanf:"max_num_batched_tokens"`  // rows of a step
	MaxNumSeqs           int           `koanf:"max_num_seqs"`            // requests that run at once
	BlockSize            int           `koanf:"block_size"`              // positions in a KV block
	NumGPUBlocksOverride int           `koanf:"num_gpu_blocks_override"` // KV blocks, 0: a quarter of free memory
	StartTimeout         time.Duration `koanf:"start_timeout"`           // longest time without progress while loading
	StallTimeout         time.Duration `koanf:"stall_timeout"`           // longest time without progress of a rank in a step
	BusTimeout           time.Duration `koanf:"bus_timeout"`             // longest time that steps wait for a bus that is away

	StatsFile string `koanf:"stats_file"` // where counters go at the end, empty: nowhere
	LogLevel  string `koanf:"log_level"`  // debug, info, warn or error
	LogFormat string `koanf:"log_format"` // text or json
}

// The values of Settings.GenerationConfig: whether the sampling defaults of a model's generation_config.json count.
const (
	Auto = "auto" // they are the defaults
	VLLM = "vllm" // they are not looked at; its EOS ids count all the same
)

// The values of Settings.MLAPrefill: what prompts meet in latent attention.
const (
	Absorbed = "absorbed" // the latents themselves
	Expanded = "expanded" // keys and values that are made from them: fewer multiplications for long prompts
)

// AllGather is a value of Settings.All2AllBackend, Auto the other: the exchange that is always there.
const AllGather = "allgather"

// DTypes returns the legal values of Settings.DType.
func DTypes() []string { return []string{Auto, "float32", "bfloat16", "w8a8"} }

// Defaults returns the settings of a user who set nothing.
func Defaults() Settings {
	return Settings{
		Device:           "cpu",
		DataParallelSize: 1, TensorParallelSize: 1, All2AllBackend: Auto, DType: Auto, MLAPrefill: Absorbed, CPUDevices: 64,
		MaxTokens: 128, Temperature: 1, TopP: 1, Logprobs: -1, GenerationConfig: VLLM,
		MaxNumBatchedTokens: 2048, MaxNumSeqs: 64, BlockSize: 16, StartTimeout: 300 * time.Second, StallTimeout: 10 * time.Second,
		BusTimeout: 300 * time.Second,
		LogLevel:   "info", LogFormat: "text",
	}
}

// Validate returns one fault for each value outside its limits, with the limits. How tokens are chosen (temperature, top_p,
// top_k) is left to Sources.Check.
func (s Settings) Validate() Faults {
	var faults Faults
	check := func(ok bool, key string, value any, limits string) {
		if !ok {
			faults = append(faults, Fault{Key: key, Problem: fmt.Sprintf("%v: %s", quoted(value), limits)})
		}
	}
	oneOf := func(key, value string, legal ...string) {
		check(slices.Contains(legal, value), key, value, "must be "+strings.Join(legal, " or "))
	}

	check(s.DataParallelSize >= 1, "data_parallel_size", s.DataParallelSize, "must be 1 or more")
	check(s.TensorParallelSize >= 1, "tensor_parallel_size", s.TensorParallelSize, "must be 1 or more")
	oneOf("all2all_backend", s.All2AllBackend, Auto, AllGather)
	oneOf("dtype", s.DType, DTypes()...)
	oneOf("mla_prefill", s.MLAPrefill, Absorbed, Expanded)
	check(s.CPUDevices >= 1, "cpu_devices", s.CPUDevices, "must be 1 or more")
	check(s.Threads >= 0, "threads", s.Threads, "must be 1 or more, or 0 for this host's processors shared by its ranks")

	check(s.MaxTokens >= 0, "max_tokens", s.MaxTokens, "must be 0 or more")
	check(s.Logprobs >= -1, "logprobs", s.Logprobs, "must be 0 or more, or -1 for none")
	for _, text := range s.Stop {
		check(text != "", "stop", text, "must not be empty")
	}
	oneOf("generation_config", s.GenerationConfig, Auto, VLLM)

	check(s.MaxModelLen >= 0, "max_model_len", s.MaxModelLen, "must be 1 or more, or 0 for what the model and memory allow")
	check(s.MaxNumBatchedTokens >= 1, "max_num_batched_tokens", s.MaxNumBatchedTokens, "must be 1 or more")
	check(s.MaxNumSeqs >= 1, "max_num_seqs", s.MaxNumSeqs, "must be 1 or more")
	check(s.BlockSize >= 1, "block_size", s.BlockSize, "must be 1 or more")
	check(s.NumGPUBlocksOverride >= 0, "num_gpu_blocks_override", s.NumGPUBlocksOverride, "must be 1 or more, or 0 for a quarter of free memory")
	check(s.StartTimeout > 0, "start_timeout", s.StartTimeout, `must be positive, such as "300s"`)
	check(s.StallTimeout >= 100*time.Millisecond, "stall_timeout", s.StallTimeout, `must be at least 100ms, such as "10s"`)
	check(s.BusTimeout >= time.Second, "bus_timeout", s.BusTimeout, `must be at least 1s, such as "300s"`)

	oneOf("log_level", s.LogLevel, "debug", "info", "warn", "error")
	oneOf("log_format", s.LogFormat, "text", "json")
	return faults
}

// quoted sets texts in quotes and leaves numbers alone.
func quoted(value any) any {
	if s, ok := value.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return value
}
