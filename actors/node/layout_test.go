package node

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/messages/bus/natsbus"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/topology"
)

// TestFixturesOfLayouts: a model spread over several ranks gives the reference's tokens; without tensor parallelism bit for bit
// the log-probabilities of one rank.
func TestFixturesOfLayouts(t *testing.T) {
	for _, tt := range []struct {
		model, fixture string
		layouts        []topology.Layout
	}{
		{"random/rnd-v3-yarn", "random/fixtures/rnd-v3-yarn.json", []topology.Layout{
			{DataParallel: 2, TensorParallel: 1}, {DataParallel: 1, TensorParallel: 2}, ep(2, 1), ep(4, 1), ep(1, 2), ep(2, 2),
		}},
		{"tiny-v2lite", "fixtures/tiny-v2lite.json", []topology.Layout{ep(2, 1)}},
		{"tiny-v3", "fixtures/tiny-v3.json", []topology.Layout{ep(4, 1)}},
	} {
		if racing && tt.model != "random/rnd-v3-yarn" {
			continue // a small model has all kinds of meetings
		}
		f := readFixture(t, tt.fixture)
		whole := generate(t, modelOptions(t, tt.model), f, len(f.Prompts))
		for _, l := range tt.layouts {
			if racing && l != ep(2, 2) {
				continue
			}
			t.Run(fmt.Sprintf("%s %+v", tt.model, l), func(t *testing.T) {
				o := modelOptions(t, tt.model)
				o.Layout = l
				for i, got := range generate(t, o, f, len(f.Prompts)) {
					if l.TensorParallel == 1 {
						same(t, f.Prompts[i].Name, got, whole[i])
					}
					checkFixture(t, f, i, got)
				}
			})
		}
	}
}

// TestFixturesOfTwoNodes: the same with two nodes in one process, each with half of the engines, and prompts on both.
func TestFixturesOfTwoNodes(t *testing.T) {
	f := readFixture(t, "random/fixtures/rnd-v3-yarn.json")
	server, err := natsbus.Embed(natsbus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	o := modelOptions(t, "random/rnd-v3-yarn")
	o.Cluster, o.Layout, o.Engines = "two", ep(4, 1), 2
	var both [2]Options
	for i := range both {
		b, err := server.Connect(t.Context(), natsbus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		both[i] = o
		both[i].Bus, both[i].Name, both[i].FirstEngine, both[i].Coordinate = b, []string{"a", "b"}[i], 2*i, i == 0
	}
	nodes := startBoth(t, both[0], both[1])
	var streams []*gateway.Stream
	for i, p := range f.Prompts {
		streams = append(streams, submit(t, nodes[i%2], actors.Request{
			IDs: p.IDs, MaxTokens: len(p.GreedyIDs), IgnoreEOS: true, Sampling: sample.Params{TopP: 1, Logprobs: 3},
		}))
	}
	for i, s := range streams {
		checkFixture(t, f, i, collect(t, s))
	}
	a, b := nodes[0].Stats(), nodes[1].Stats()
	if a.Bus.Kind != "nats-inproc" || a.Bus.Votes == 0 || b.Bus.Votes == 0 || b.Bus.Plans == 0 || a.Bytes.A2E == 0 || b.Bytes.E2A == 0 {
		t.Errorf("stats %+v, bus %+v\n%+v, bus %+v", a, a.Bus, b, b.Bus)
	}
	closeBoth(t, nodes)
}

// TestUnevenEnginesOverNATS: votes and plans really pass the server: it counts at least two messages for every step.
func TestUnevenEnginesOverNATS(t *testing.T) {
	b, err := natsbus.Start(t.Context(), natsbus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	f := newFakes(ep(2, 1))
	o := f.options(t)
	o.Bus = b
	before, _, err := b.Server().Traffic()
	if err != nil {
		t.Fatal(err)
	}
	s := uneven(t, f, o)
	after, _, err := b.Server().Traffic()
	if err != nil {
		t.Fatal(err)
	}
	if s.Bus.Kind != "nats-inproc" || int64(after-before) < 2*s.Steps {
		t.Errorf("bus %+v: the server saw %d messages of %d steps", s.Bus, after-before, s.Steps)
	}
}

// TestSharedMemory: the ranks of a node share what is free: together they get no more KV blocks than one alone, and sizes that
// fit one rank are refused for several.
func TestSharedMemory(t *testing.T) {
	var blocks []int
	for _, l := range []topology.Layout{{DataParallel: 1, TensorParallel: 1}, {DataParallel: 4, TensorParallel: 1}} {
		o := modelOptions(t, "random/rnd-v3-yarn")
		o.Layout, o.MaxNumSeqs, o.MaxNumBatchedTokens = l, 1, 16
		n := startNode(t, o)
		for _, e := range n.Stats().Engines {
			blocks = append(blocks, e.KVBlocks)
		}
	}
	if len(slices.Compact(blocks)) != 1 { // one request's worth, which fits a quarter of a quarter
		t.Errorf("KV blocks %v, want the same on all engines", blocks)
	}
	mem := &memory{ranks: 4}
	mem.once.Do(func() { mem.free = 1003 })
	if share, err := mem.share(nil); share != 250 || err != nil {
		t.Errorf("a quarter of 1003 bytes: %d, %v", share, err)
	}
}
