package node

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/rank"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	vocab    = 60
	modelLen = 64
)

// fakes are the models of a layout's ranks, and where they meet.
type fakes struct {
	models []*actortest.Model // by global rank
	rack   actortest.Rack
	layout topology.Layout
}

func newFakes(l topology.Layout) *fakes {
	f := &fakes{layout: l}
	for range l.World() {
		f.models = append(f.models, actortest.NewModel(vocab, nn.Limits{
			Rows: topology.PadTo([]int{8}, l.TensorParallel), Samples: 4, Sequences: 4, ModelLen: modelLen, Blocks: 40, BlockSize: 4,
		}))
	}
	return f
}

// load stands in for opening a device: the rank's model is there at once.
func (f *fakes) load(r int) (opening, func() int64) {
	m := f.models[r]
	open := func(context.Context) (rank.Opened, error) {
		return rank.Opened{
			Model: m, Join: f.rack.Join, Close: func() error { return nil },
			Facts: actors.RankFacts{WeightBytes: 1234, Threads: 1, Layers: actortest.Layers, KVBlocks: 40, ModelLen: modelLen, Progress: &m.Progress},
		}, nil
	}
	return open, func() int64 { return 0 }
}

// options are those of a node that has all of the layout, on a bus of its own.
func (f *fakes) options(t *testing.T) Options {
	t.Helper()
	o := Defaults()
	o.Name, o.Layout, o.Bus = "here", f.layout, newBus(t, membus.New(membus.Options{}))
	o.Config = &config.Config{VocabSize: vocab, MaxPositionEmbeddings: modelLen, NumLayers: actortest.Layers, NumRoutedExperts: 16}
	o.MaxNumBatchedTokens, o.MaxNumSeqs, o.BlockSize, o.KVBlocks = 8, 4, 4, 40
	o.load = f.load
	return o
}

// fakeOptions are those of a node over one fake model, which change may arm.
func fakeOptions(t *testing.T, change func(*actortest.Model, *Options)) Options {
	t.Helper()
	f := newFakes(topology.Layout{DataParallel: 1, TensorParallel: 1})
	o := f.options(t)
	if change != nil {
		change(f.models[0], &o)
	}
	return o
}

// bubble runs a test on a clock of its own. At the end, behind all cleanups, it lets time pass: the actor library counts undelivered
// messages for a moment.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) })
		f(t)
	})
}

// newBus connects to a network until the test ends.
func newBus(t *testing.T, n *membus.Network) bus.Bus {
	t.Helper()
	b := n.Connect()
	t.Cleanup(func() {
		if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("bus: %v", err)
		}
	})
	return b
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
		case <-ctx.Done():
			return ctx.Err()
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
