package cluster

import (
	"context"
	"errors"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/model/weights"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is the smallest of test/models with latent queries, a dense layer and two with experts.
const model = "../models/random/rnd-v3-yarn"

// options are those of a node over the model.
func options(t *testing.T) node.Options {
	t.Helper()
	o := node.Defaults()
	b := membus.New(membus.Options{}).Connect()
	t.Cleanup(func() {
		if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("bus: %v", err)
		}
	})
	o.Bus = b
	var err error
	if o.Config, err = config.Load(model); err != nil {
		t.Fatal(err)
	}
	if o.Checkpoint, err = weights.Open(model); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Checkpoint.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Open = func(index int) (hal.Device, error) { return cpu.Open(cpu.Options{Index: index}) }
	o.MaxNumSeqs = 4 // a small KV cache
	return o
}

// ask submits a greedy request to an engine.
func ask(t *testing.T, n *node.Node, engine, tokens int, prompt ...int32) (*gateway.Stream, error) {
	t.Helper()
	return n.Submit(t.Context(), actors.Request{
		IDs: prompt, MaxTokens: tokens, IgnoreEOS: true, Engine: &engine, Sampling: sample.Params{TopP: 1, Logprobs: sample.NoLogprobs},
	})
}

// end reads a stream to its end and returns the request's error.
func end(t *testing.T, s *gateway.Stream) (err error) {
	t.Helper()
	for {
		c, recv := s.Recv(t.Context())
		if errors.Is(recv, io.EOF) {
			return err
		}
		if recv != nil {
			t.Errorf("recv: %v", recv)
			return recv
		}
		err = c.Err
	}
}
