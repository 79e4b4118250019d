package node

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// record collects a log; it may be written from any goroutine.
type record struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func TestStartSays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		says   []string
		silent []string
	}{
		{
			"sizes", func(*Options) {},
			[]string{`level=INFO msg="node is ready" node=local`, "max_model_len=1024 kv_blocks=512 block_size=16"},
			[]string{"WARN"},
		},
		{
			"a model length that was cut", func(o *Options) { o.KVBlocks = 4 },
			[]string{`level=WARN msg="max-model-len cut to what the KV cache holds" wanted=1024 max_model_len=64 kv_blocks=4`, "max_model_len=64"},
			nil,
		},
		{"tensors that no layer uses", func(o *Options) {
			c := *o.Config
			c.NumSharedExperts = 0
			o.Config = &c
		}, []string{`level=WARN msg="the checkpoint has tensors that no layer uses" tensors=9 first="[model.layers.1.mlp.shared_experts.down_proj.weight`}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := modelOptions(t, "tiny-v3") // its MTP module is a leftover that needs no word
			var log record
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			tt.change(&o)
			startNode(t, o)
			for _, want := range tt.says {
				if !strings.Contains(log.String(), want) {
					t.Errorf("log does not say %q:\n%s", want, log.String())
				}
			}
			for _, no := range tt.silent {
				if strings.Contains(log.String(), no) {
					t.Errorf("log says %q:\n%s", no, log.String())
				}
			}
		})
	}
}

// TestLoadErrors: what is wrong with a checkpoint comes back from Start, by rank and tensor.
func TestLoadErrors(t *testing.T) {
	o := modelOptions(t, "random/rnd-v3-yarn")
	c := *o.Config
	c.NumLayers++
	o.Config = &c
	if n, err := Start(t.Context(), o); err == nil || n != nil || !strings.Contains(err.Error(), "rank 0 on node local: loading weights:") || !strings.Contains(err.Error(), "model.layers.3.") {
		t.Errorf("a layer too many: %v", err)
	}
	o = modelOptions(t, "random/rnd-v3-yarn")
	o.BlockSize = 1 << 30
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "KV cache: one block of block-size=1073741824 positions takes 515396075520 bytes") {
		t.Errorf("blocks larger than memory: %v", err)
	}
	for want, change := range map[string]func(*Options){
		"max-num-batched-tokens=2000000000 rows take": func(o *Options) { o.MaxNumBatchedTokens = 2_000_000_000 },
		"num-gpu-blocks-override":                     func(o *Options) { o.KVBlocks = 100_000_000 },
	} {
		o = modelOptions(t, "random/rnd-v3-yarn")
		change(&o)
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "are free") {
			t.Errorf("sizes beyond memory: error %v, want one that says %q", err, want)
		}
	}
}
