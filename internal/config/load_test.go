package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// write makes a settings file and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "moe.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNothingGivenIsDefaults(t *testing.T) {
	got, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Settings, Defaults()) {
		t.Errorf("got %+v", got.Settings)
	}
	for _, key := range Keys() {
		if got.Given(key.Name) {
			t.Errorf("%s counts as given", key.Name)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	got, err := Load(Sources{
		File:    write(t, "max_tokens: 1\ntemperature: 1\ntop_k: 1\n"),
		Environ: []string{"PATH=/bin", "MOE_TEMPERATURE=0.5", "MOE_TOP_K=2"},
		Flags:   map[string]any{"top_k": "3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.MaxTokens != 1 || got.Temperature != 0.5 || got.TopK != 3 {
		t.Errorf("file, variable, flag: got %d, %v, %d", got.MaxTokens, got.Temperature, got.TopK)
	}
	if !got.Given("max_tokens") || !got.Given("temperature") || !got.Given("top_k") || got.Given("top_p") {
		t.Error("what was given is not what counts as given")
	}
}

func TestEveryKeyFromEverySource(t *testing.T) {
	want := Settings{
		Model: "m", Device: "cpu", MaxTokens: 7, Temperature: 0.25, TopP: 0.5, TopK: 4, Seed: 1<<64 - 1, IgnoreEOS: true, Logprobs: 2,
		Stop: []string{"END"}, GenerationConfig: "auto", MaxModelLen: 64, MaxNumBatchedTokens: 8, MaxNumSeqs: 2, BlockSize: 4,
		NumGPUBlocksOverride: 9, StartTimeout: time.Minute, StallTimeout: time.Second, BusTimeout: time.Hour, MLAPrefill: Expanded, DataParallelSize: 4, TensorParallelSize: 2,
		EnableExpertParallel: true, All2AllBackend: "allgather", DType: "bfloat16", CPUDevices: 8, Threads: 3, BindThreads: true, KernelsOff: "avx2", NATS: "nats://h:1", StatsFile: "s.json", LogLevel: "error", LogFormat: "json",
	}
	texts := map[string]string{
		"model": "m", "device": "cpu", "max_tokens": "7", "temperature": "0.25", "top_p": "0.5", "top_k": "4", "seed": "18446744073709551615",
		"ignore_eos": "true", "logprobs": "2", "stop": "END", "generation_config": "auto", "max_model_len": "64", "max_num_batched_tokens": "8",
		"max_num_seqs": "2", "block_size": "4", "num_gpu_blocks_override": "9", "start_timeout": "1m", "stats_file": "s.json",
		"log_level": "error", "log_format": "json", "stall_timeout": "1s", "bus_timeout": "1h", "mla_prefill": "expanded", "data_parallel_size": "4", "tensor_parallel_size": "2",
		"enable_expert_parallel": "true", "all2all_backend": "allgather", "dtype": "bfloat16", "cpu_devices": "8", "threads": "3", "bind_threads": "true", "kernels_off": "avx2", "nats": "nats://h:1",
	}
	var yaml strings.Builder
	var environ []string
	flags := map[string]any{}
	for _, key := range Keys() {
		text, ok := texts[key.Name]
		if !ok {
			t.Fatalf("key %s is not in this test", key.Name)
		}
		yaml.WriteString(key.Name + ": " + text + "\n")
		environ = append(environ, "MOE_"+strings.ToUpper(key.Name)+"="+text)
		flags[key.Name] = text
	}
	for name, src := range map[string]Sources{"file": {File: write(t, yaml.String())}, "variables": {Environ: environ}, "flags": {Flags: flags}} {
		got, err := Load(src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(got.Settings, want) {
			t.Errorf("%s: got %+v", name, got.Settings)
		}
	}
}

func TestFaultsComeAllAtOnceWithTheirSource(t *testing.T) {
	path := write(t, "max_tokenz: 5\nmax-model-len: 5\ntop_p: [1]\nnested: {key: 1}\n")
	_, err := Load(Sources{
		File:    path,
		Environ: []string{"MOE_TEMPERATURE=hot", "MOE_SEED=-1", "MOE_START_TIMEOUT=5", "MOE_TOP_K=two"},
		Flags:   map[string]any{"max_num_seqs": "0", "logprobs": "-2", "generation_config": "yes", "ignore_eos": "maybe", "stop": []string{"a", ""}},
	})
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("want Faults, got %v", err)
	}
	for _, want := range []string{
		path + `: max_tokenz=5: unknown key; did you mean max_tokens?`,
		path + `: max-model-len=5: unknown key; did you mean max_model_len?`,
		path + `: nested.key=1: unknown key`,
		path + `: top_p=[1]: must be a single value`,
		`MOE_TEMPERATURE="hot": must be a number`,
		`MOE_SEED="-1": must be a whole number from 0 to 18446744073709551615`,
		`MOE_TOP_K="two": must be a whole number`,
		`MOE_START_TIMEOUT="5": must be a time with a unit, such as "30s" or "5m"`,
		`--max-num-seqs=0: must be 1 or more`,
		`--logprobs=-2: must be 0 or more, or -1 for none`,
		`--generation-config="yes": must be auto or vllm`,
		`--ignore-eos="maybe": must be true or false`,
		`--stop="": must not be empty`,
	} {
		if !slices.Contains(strings.Split(err.Error(), "\n"), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
	if len(faults) != 13 {
		t.Errorf("%d faults, want 13:\n%v", len(faults), err)
	}
}

func TestValidateNamesLimits(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"max_tokens", "-1", "--max-tokens=-1: must be 0 or more"},
		{"max_model_len", "-1", "--max-model-len=-1: must be 1 or more, or 0 for what the model and memory allow"},
		{"block_size", "0", "--block-size=0: must be 1 or more"},
		{"start_timeout", "0s", `--start-timeout=0s: must be positive, such as "300s"`},
		{"stall_timeout", "99ms", `--stall-timeout=99ms: must be at least 100ms, such as "10s"`},
		{"bus_timeout", "10ms", `--bus-timeout=10ms: must be at least 1s, such as "300s"`},
		{"data_parallel_size", "0", "--data-parallel-size=0: must be 1 or more"},
		{"tensor_parallel_size", "-2", "--tensor-parallel-size=-2: must be 1 or more"},
		{"all2all_backend", "mc2", `--all2all-backend="mc2": must be auto or allgather`},
		{"mla_prefill", "plain", `--mla-prefill="plain": must be absorbed or expanded`},
		{"dtype", "float16", `--dtype="float16": must be auto or float32 or bfloat16 or w8a8`},
		{"cpu_devices", "0", "--cpu-devices=0: must be 1 or more"},
		{"threads", "-1", "--threads=-1: must be 1 or more, or 0 for this host's processors shared by its ranks"},
		{"log_level", "loud", `--log-level="loud": must be debug or info or warn or error`},
		{"log_format", "xml", `--log-format="xml": must be text or json`},
	} {
		_, err := Load(Sources{Flags: map[string]any{c.key: c.value}})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s=%s: got %v, want %s", c.key, c.value, err, c.want)
		}
	}
}

// What others find wrong comes with the other faults, named as the user wrote it; a value that could not be read is not theirs.
func TestCheckOfOthers(t *testing.T) {
	_, err := Load(Sources{
		Environ: []string{"MOE_TOP_K=-2"},
		Flags:   map[string]any{"block_size": "0", "temperature": "hot", "top_p": "2"},
		Check: func(s Settings) Faults {
			if s.Temperature != Defaults().Temperature {
				t.Errorf("asked about a temperature of %v that nobody gave", s.Temperature)
			}
			return Faults{{Key: "top_p", Problem: fmt.Sprintf("%v: too high", s.TopP)}, {Key: "top_k", Problem: fmt.Sprintf("%v: too low", s.TopK)}}
		},
	})
	const want = "--temperature=\"hot\": must be a number\n--block-size=0: must be 1 or more\n--top-p=2: too high\nMOE_TOP_K=-2: too low"
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestUnknownVariableIsAWarning(t *testing.T) {
	got, err := Load(Sources{Environ: []string{"MOE_MAX_TOKEN=5", "MOE_top_k=1", "MOE_ZZZZZZZZ=1", "MOE", "OTHER_TOP_K=7"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"variable MOE_MAX_TOKEN is no setting; did you mean MOE_MAX_TOKENS?",
		"variable MOE_top_k is no setting; did you mean MOE_TOP_K?",
		"variable MOE_ZZZZZZZZ is no setting",
	}
	if !slices.Equal(got.Warnings, want) {
		t.Errorf("warnings %q", got.Warnings)
	}
}

func TestFileVariableYieldsToFlag(t *testing.T) {
	one, two := write(t, "top_k: 1\n"), write(t, "top_k: 2\n")
	for _, c := range []struct {
		flag string
		want int
	}{{"", 1}, {two, 2}} {
		got, err := Load(Sources{File: c.flag, Environ: []string{"MOE_CONFIG=" + one}})
		if err != nil || got.TopK != c.want {
			t.Errorf("flag %q: %v, %v", c.flag, got, err)
		}
	}
}

func TestUnreadableFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "none.yaml")
	broken := write(t, "top_k: [\n")
	scalarOnly := write(t, "just text\n")
	for path, want := range map[string]string{dir: "is a directory, want a file", missing: "no such file", broken: "key: value lines", scalarOnly: "key: value lines", "/dev/zero": "is longer than 1024 KiB"} {
		_, err := Load(Sources{File: path})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestEmptyFileAndEmptyValuesSayNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "top_k:\nstop: ~\n"} {
		got, err := Load(Sources{File: write(t, text)})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if !reflect.DeepEqual(got.Settings, Defaults()) || got.Given("top_k") {
			t.Errorf("%q: got %+v", text, got.Settings)
		}
	}
}

func TestStopIsATextOrAList(t *testing.T) {
	for text, want := range map[string][]string{"stop: END\n": {"END"}, "stop: [a, b]\n": {"a", "b"}, "stop: []\n": {}} {
		got, err := Load(Sources{File: write(t, text)})
		if err != nil || !slices.Equal(got.Stop, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"stop: 5\n": "stop=5: must be a text or a list of texts", "stop: [a, 5]\n": "stop=5: item 1 must be a text"} {
		if _, err := Load(Sources{File: write(t, text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"max_tokens", "max_num_seqs", "top_k", "top_p"}
	for word, want := range map[string]string{"max_token": "max_tokens", "topk": "top_k", "max_num_seq": "max_num_seqs", "unrelated": "", "": ""} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// FuzzFile looks for a file that panics, or that is taken without being valid.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{"max_tokens: 5\n", "stop: [a, b]\n", "top_p: .inf\n", "a: {b: {c: 1}}\n", "? [x]\n: y\n", "seed: 0x10\nseed: 1\n", "&a [*a]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Load(Sources{File: write(t, text)})
		if err == nil && len(got.Validate()) > 0 {
			t.Errorf("%q gave settings that are not valid: %+v", text, got.Settings)
		}
	})
}

// With faults the rest is there all the same, for those who look for more of them.
func TestFaultsLeaveTheRest(t *testing.T) {
	got, err := Load(Sources{Environ: []string{"MOE_OUTPUT=json"}, Flags: map[string]any{"model": "m", "max_num_seqs": "0", "top_k": "many", "top_p": "0.5"}})
	if err == nil || got.Model != "m" || got.TopP != 0.5 || got.MaxNumSeqs != Defaults().MaxNumSeqs || got.TopK != 0 || len(got.Warnings) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if f := got.Fault("top_p", "0.5: odd"); f.Error() != "--top-p=0.5: odd" {
		t.Errorf("%v", f)
	}
	missing := filepath.Join(t.TempDir(), "none.yaml")
	got, err = Load(Sources{File: missing, Environ: []string{"MOE_OUTPUT=json"}})
	if err == nil || got.MaxNumSeqs != Defaults().MaxNumSeqs || len(got.Warnings) != 1 || got.File != missing {
		t.Errorf("%+v, %v", got, err)
	}
}
