package node

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	vocab    = 60
	modelLen = 64
)

// fakeOptions are those of a node over a fake model, which change may arm.
func fakeOptions(change func(*actortest.Model, *Options)) Options {
	o := Defaults()
	o.Name = "here"
	o.Config = &config.Config{VocabSize: vocab, MaxPositionEmbeddings: modelLen, NumLayers: actortest.Layers}
	o.MaxNumBatchedTokens, o.MaxNumSeqs, o.BlockSize, o.KVBlocks = 8, 4, 4, 40
	m := actortest.NewModel(vocab, nn.Limits{Rows: 8, Samples: 4, Sequences: 4, ModelLen: modelLen, Blocks: 40, BlockSize: 4})
	open := func(context.Context) (rank.Opened, error) {
		return rank.Opened{
			Model: m, Close: func() error { return nil },
			Facts: actors.RankFacts{WeightBytes: 1234, Threads: 1, Layers: actortest.Layers, KVBlocks: 40, ModelLen: modelLen},
		}, nil
	}
	o.load = func(int) (func(context.Context) (rank.Opened, error), func() int64) {
		return open, func() int64 { return 0 }
	}
	if change != nil {
		change(m, &o)
	}
	return o
}

// startNode starts a node; at the end it must close, with the KV pool whole.
func startNode(t *testing.T, o Options) *Node {
	t.Helper()
	n, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
		for _, e := range n.Stats().Engines {
			if e.KVBlocksFree != e.KVBlocks {
				t.Errorf("%d of %d KV blocks are free at the end", e.KVBlocksFree, e.KVBlocks)
			}
		}
	})
	return n
}

func greedy() sample.Params { return sample.Params{TopP: 1, Logprobs: sample.NoLogprobs} }

func submit(t *testing.T, n *Node, r actors.Request) *gateway.Stream {
	t.Helper()
	if r.Sampling == (sample.Params{}) {
		r.Sampling = greedy()
	}
	s, err := n.Submit(t.Context(), r)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return s
}

// outcome is a whole answer.
type outcome struct {
	prompt, tokens []int32
	text           string
	logprobs       []sample.Logprobs
	finish         actors.FinishReason
	err            error
}

func collect(t *testing.T, s *gateway.Stream) (o outcome) {
	t.Helper()
	for {
		c, err := s.Recv(t.Context())
		if errors.Is(err, io.EOF) {
			return o
		}
		if err != nil {
			t.Errorf("recv: %v", err)
			return o
		}
		if o.finish != "" {
			t.Errorf("a chunk after the last: %+v", c)
		}
		o.prompt = append(o.prompt, c.Prompt...)
		o.tokens, o.text, o.finish, o.err = append(o.tokens, c.Tokens...), o.text+c.Text, c.Finish, c.Err
		o.logprobs = append(o.logprobs, c.Logprobs...)
	}
}

// gate lets a test hold the model between two steps.
type gate struct{ began, letGo chan struct{} }

func gated(m *actortest.Model) *gate {
	g := &gate{make(chan struct{}), make(chan struct{})}
	m.Before = func(ctx context.Context, _ int, _ *nn.Batch) error {
		select {
		case g.began <- struct{}{}:
		case <-g.letGo:
			return nil
		}
		select {
		case <-g.letGo:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g
}

func wantTokens(t *testing.T, what string, o outcome, prompt []int32, n int) {
	t.Helper()
	if want := actortest.Answer(prompt, n, vocab); !slices.Equal(o.tokens, want) || o.finish != actors.FinishLength || !slices.Equal(o.prompt, prompt) {
		t.Errorf("%s: prompt %v, tokens %v, %s %v; want prompt %v, tokens %v, length", what, o.prompt, o.tokens, o.finish, o.err, prompt, want)
	}
}
