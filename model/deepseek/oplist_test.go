package deepseek_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

// TestOps: one dense layer, then one with experts, in every kind of layout. A + marks what meets other ranks.
func TestOps(t *testing.T) {
	for _, tt := range []struct {
		name   string
		shared int
		layout topology.Layout
		want   string
	}{
		{
			"one rank", 1,
			topology.Layout{DataParallel: 1, TensorParallel: 1},
			"embed | attention mlp | attention route dispatch shared experts combine | logits sample",
		},
		{
			"experts spread", 1,
			topology.Layout{DataParallel: 4, TensorParallel: 1, ExpertParallel: true},
			"embed | attention mlp | attention route a2e+ shared experts e2a+ combine | logits sample",
		},
		{
			"no shared experts", 0,
			topology.Layout{DataParallel: 2, TensorParallel: 2, ExpertParallel: true},
			"embed reduce+ | attention reduce+ mlp reduce+ | attention reduce+ route a2e+ experts e2a+ combine gather+ | logits gather+ sample tokens+",
		},
		{
			"cut and spread", 1,
			topology.Layout{DataParallel: 2, TensorParallel: 2, ExpertParallel: true},
			"embed reduce+ | attention reduce+ mlp reduce+ | attention reduce+ route a2e+ shared scatter+ experts e2a+ combine gather+ | logits gather+ sample tokens+",
		},
		{
			"cut", 1,
			topology.Layout{DataParallel: 2, TensorParallel: 2},
			"embed reduce+ | attention reduce+ mlp reduce+ | attention reduce+ route dispatch shared experts combine reduce+ | logits gather+ sample tokens+",
		},
	} {
		c := base()
		c.NumLayers, c.NumSharedExperts = 2, tt.shared
		step := nn.Step{Exchange: topology.Local, Stages: 1}
		if tt.layout.EP() > 1 {
			step.Exchange = topology.AllGather
		}
		if got := inShort(deepseek.Ops(c, tt.layout.Place(0), step)); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// inShort writes a list with a bar where the layer changes.
func inShort(list []nn.Op) string {
	var words []string
	for i, op := range list {
		if i > 0 && op.Layer != list[i-1].Layer {
			words = append(words, "|")
		}
		word := string(op.Name)
		for long, short := range map[string]string{"all-reduce": "reduce", "reduce-scatter": "scatter", "all-gather": "gather"} {
			if strings.HasSuffix(word, long) {
				word = short
			}
		}
		if op.Name == nn.OpLogitsGather {
			word = "gather"
		}
		if op.Name == nn.OpShared {
			word = "shared"
		}
		if op.Name.Meets() {
			word += "+"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// TestOpsAreOfTheGroup: nothing but the sizes of a place counts.
func TestOpsAreOfTheGroup(t *testing.T) {
	c := base()
	for _, l := range []topology.Layout{{DataParallel: 3, TensorParallel: 2, ExpertParallel: true}, {DataParallel: 3, TensorParallel: 2}, {DataParallel: 6, TensorParallel: 1, ExpertParallel: true}} {
		step := nn.Step{Exchange: topology.Local, Stages: 1}
		if l.EP() > 1 {
			step.Exchange = topology.AllGather
		}
		want := deepseek.Ops(c, l.Place(0), step)
		for rank := range l.World() {
			step.Number++
			if got := deepseek.Ops(c, l.Place(rank), step); !slices.Equal(got, want) {
				t.Errorf("%+v: rank %d has %v, rank 0 %v", l, rank, got, want)
			}
		}
	}
}

// TestPlaces: a place that the network cannot be cut for is refused, all faults at once.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		place topology.Place
		want  []string
	}{
		{topology.Place{}, []string{"is no place in a layout"}},
		{topology.Place{TP: 2, TPRank: 2, EP: 1}, []string{"is no place in a layout"}},
		{topology.Place{TP: 4, EP: 5}, []string{"tensor parallelism of 4 must divide the attention heads of 3", "must divide the width of shared experts of 22", "5 ranks must divide the 12 experts"}},
		{topology.Place{TP: 4, EP: 1}, []string{"tensor parallelism of 4 must divide the attention heads of 3", "must divide the width of experts of 22"}},
		{topology.Place{TP: 49, TPRank: 48, EP: 1}, []string{"tensor parallelism of 49 leaves rank 48 no part of the vocabulary of 50"}},
	} {
		t.Run(fmt.Sprintf("%+v", tt.place), func(t *testing.T) {
			c := base()
			_, err := newCheckpoint(5, c, "BF16").at(t, c, tt.place)
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one that says %q", err, want)
				}
			}
			if got := deepseek.Bytes(c, tt.place, limits); got != 0 {
				t.Errorf("%d bytes at a place that is refused", got)
			}
		})
	}
}

// TestRefusedSteps: a step that this place does not run is refused before anything runs, and the model goes on.
func TestRefusedSteps(t *testing.T) {
	c := base()
	m, err := newCheckpoint(5, c, "BF16").open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	b := &nn.Batch{}
	feed(b, prompt)
	for want, s := range map[string]nn.Step{
		`exchange "allgather": with experts on 1 ranks it is "local"`: {Number: 1, Exchange: topology.AllGather, Stages: 1},
		"deepseek: 2 stages": {Number: 7, Exchange: topology.Local, Stages: 2},
	} {
		if _, err := m.Forward(t.Context(), b, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		if p := m.Progress().Read(); p.Running || p.Moves != 0 {
			t.Errorf("a refused step left traces: %+v", p)
		}
	}
	if _, err := forward(t.Context(), m, b); err != nil {
		t.Errorf("after refusals: %v", err)
	}

	for want, place := range map[string]topology.Place{
		"no communicator of the ranks that share the experts: there are 2": {TP: 1, EP: 2},
		"no communicator of the engine's ranks: there are 3":               {TP: 3, EP: 1},
	} {
		c := base()
		c.MoEIntermediateSize, c.IntermediateSize = 24, 48
		m, err := newCheckpoint(5, c, "BF16").at(t, c, place)
		if err != nil {
			t.Fatal(err)
		}
		s := nn.Step{Number: 1, Exchange: topology.Local, Stages: 1}
		if place.EP > 1 {
			s.Exchange = topology.AllGather
		}
		if _, err := m.Forward(t.Context(), b, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		m.Join(stranger{}, stranger{})
		if _, err := m.Forward(t.Context(), b, s); err == nil || !strings.Contains(err.Error(), "is of rank 0 of 7, this is rank 0 of ") {
			t.Errorf("error %v, want one about a communicator of 7 ranks", err)
		}
		if place.TP > 1 {
			odd := &nn.Batch{}
			feed(odd, prompt[:4])
			if _, err := m.Forward(t.Context(), odd, s); err == nil || !strings.Contains(err.Error(), "multiple of the engine's 3 ranks") {
				t.Errorf("error %v, want one about a multiple of 3", err)
			}
		}
	}
}

// stranger is a communicator of another group.
type stranger struct{ hal.Comm }

func (stranger) Group() hal.Group { return hal.Group{Size: 7} }
