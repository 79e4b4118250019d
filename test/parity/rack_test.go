package parity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
	"github.com/moerack/moerack/test/rig"
	"github.com/moerack/moerack/topology"
)

// copyModel writes a checkpoint anew, its tensors changed by f.
func copyModel(t *testing.T, name string, f func(weightstest.Tensor) []weightstest.Tensor) string {
	t.Helper()
	ckpt := open(t, name)
	var tensors []weightstest.Tensor
	for _, n := range ckpt.Names() {
		tensors = append(tensors, f(tensor(t, ckpt, n))...)
	}
	dir := t.TempDir()
	if err := weightstest.Write(filepath.Join(dir, "model.safetensors"), tensors...); err != nil {
		t.Fatal(err)
	}
	cfg, err := os.ReadFile(filepath.Join(rig.Dir(name), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), cfg, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens the weights of a model until the test ends.
func open(t *testing.T, name string) *weights.Checkpoint {
	t.Helper()
	ckpt, err := weights.Open(rig.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rig.Close(t, ckpt) })
	return ckpt
}

// tensor copies a tensor out of a checkpoint.
func tensor(t *testing.T, ckpt *weights.Checkpoint, name string) weightstest.Tensor {
	t.Helper()
	w, err := ckpt.Tensor(name, weights.Want{})
	if err != nil {
		t.Fatal(err)
	}
	return weightstest.Tensor{Name: name, DType: w.DType.String(), Shape: w.Shape, Data: slices.Clone(w.Data)}
}

// TestPaddingIsNothing: with an embedding of the padding token that is not a number, padded rows and dummy batches change no bit of
// any other row, on any rank.
func TestPaddingIsNothing(t *testing.T) {
	const name = "random/rnd-v3-yarn"
	poisoned := copyModel(t, name, func(w weightstest.Tensor) []weightstest.Tensor {
		if w.Name == "model.embed_tokens.weight" {
			copy(w.Data, weightstest.BF16(nan))
		}
		return []weightstest.Tensor{w}
	})
	for _, l := range []topology.Layout{
		{DataParallel: 2, TensorParallel: 1, ExpertParallel: true},
		{DataParallel: 4, TensorParallel: 1, ExpertParallel: true},
		{DataParallel: 2, TensorParallel: 2, ExpertParallel: true},
		{DataParallel: 2, TensorParallel: 2},
	} {
		t.Run(fmt.Sprintf("dp%d tp%d ep=%v", l.DataParallel, l.TensorParallel, l.ExpertParallel), func(t *testing.T) {
			got, want := uneven(t, poisoned, l), uneven(t, rig.Dir(name), l)
			for e := range want {
				sameBits(t, fmt.Sprintf("engine %d", e), got[e], want[e])
			}
		})
	}
}

// uneven runs steps in which the engines have different numbers of rows, or none, and returns their logits.
func uneven(t *testing.T, dir string, l topology.Layout) [][]float32 {
	t.Helper()
	k := rig.LoadRack(t, rig.RackOptions{Dir: dir, Layout: l})
	seqs, all := make([]*rig.Sequence, l.DataParallel), make([][]float32, l.DataParallel)
	for e := range seqs {
		seqs[e] = k.Engine(e).Sequence(64)
	}
	for turn := range 6 {
		batches := make([]*nn.Batch, l.DataParallel)
		for e := range batches {
			batches[e] = &nn.Batch{}
			if n := (turn + 3*e) % 5; n > 0 {
				k.Engine(e).Feed(batches[e], seqs[e], tokens(n), true)
			}
		}
		for e, out := range k.Step(batches) {
			for i, layer := range out.BadLayer {
				if layer >= 0 {
					t.Fatalf("turn %d: sample %d of engine %d: output of layer %d is not finite", turn, i, e, layer)
				}
			}
			all[e] = append(all[e], out.Logits...)
		}
	}
	return all
}

// TestCounters: bytes sent and rows served are those of the layout; padding is not served.
func TestCounters(t *testing.T) {
	const name = "random/rnd-v2-group" // 3 layers, one of them dense, hidden 64, 16 experts, 4 for each token
	const layers, moe, hidden, perToken = 3, 2, 64, 4
	for _, l := range layouts {
		if l.TensorParallel > 2 {
			continue
		}
		t.Run(fmt.Sprintf("dp%d tp%d ep=%v", l.DataParallel, l.TensorParallel, l.ExpertParallel), func(t *testing.T) {
			k := rig.LoadRack(t, rig.RackOptions{Dir: rig.Dir(name), Layout: l})
			batches, fed := make([]*nn.Batch, l.DataParallel), 0
			for e := range batches {
				batches[e] = &nn.Batch{}
				k.Engine(e).Feed(batches[e], k.Engine(e).Sequence(8), tokens(3+e), false)
				fed += 3 + e
			}
			outs, e2a := k.Step(batches), int64(0)
			for e, out := range outs {
				rows, tp, ep := int64(batches[e].Rows()), int64(l.TensorParallel), int64(l.EP())
				sent := out.Sent
				e2a += sent.E2A
				if want := moe * rows / tp * hidden * 4 * (ep - 1); sent.A2E != want {
					t.Errorf("engine %d sent %d bytes to experts, want %d", e, sent.A2E, want)
				}
				matrix := rows * hidden * 4 * (tp - 1) / tp // one phase of a collective
				// Embedding, attention and second blocks: an all-reduce is two phases, as are reduce-scatter and all-gather.
				if want := 2 * matrix * (1 + layers + layers); sent.TP != want {
					t.Errorf("engine %d sent %d bytes to its ranks, want %d", e, sent.TP, want)
				}
			}
			if most := int64(moe * fed * perToken * hidden * 4); l.EP() == 1 && e2a != 0 || l.EP() > 1 && (e2a <= 0 || e2a > most) {
				t.Errorf("%d bytes came back from experts, want at most %d, and none from the own", e2a, most)
			}
			served := int64(0)
			for _, r := range k.Ranks {
				if !l.ExpertParallel && r.Place.TPRank > 0 {
					continue // counts the same rows
				}
				for _, n := range r.Model.Load().Rows() {
					served += n
				}
			}
			if want := int64(moe * fed * perToken); served != want {
				t.Errorf("experts served %d rows, want %d", served, want)
			}
		})
	}
}

// TestOwnWeights: with experts spread, each is read by one rank and the rest by all; cut by tensor parallelism, a rank reads less
// than half as much again as its half.
func TestOwnWeights(t *testing.T) {
	const name = "tiny-v2lite"
	experts, ckpt := int64(0), open(t, name)
	for _, n := range ckpt.Names() {
		if strings.Contains(n, ".mlp.experts.") {
			experts += int64(len(tensor(t, ckpt, n).Data))
		}
	}
	alone := rig.Load(t, name, 16).Reader.Bytes()
	for _, ep := range []int{2, 4, 8} {
		for rank := range ep {
			r := rig.LoadRank(t, rig.Dir(name), topology.Place{Rank: rank, Engine: rank, TP: 1, EP: ep, EPRank: rank}, 16)
			if got, want := r.Reader.Bytes(), alone-experts+experts/int64(ep); got != want {
				t.Errorf("rank %d of %d reads %d bytes, want %d", rank, ep, got, want)
			}
		}
	}
	for rank := range 2 {
		r := rig.LoadRank(t, rig.Dir(name), topology.Place{Rank: rank, TP: 2, TPRank: rank, EP: 1}, 16)
		if got := r.Reader.Bytes(); got < alone/2 || got > alone*3/4 {
			t.Errorf("TP rank %d of 2 reads %d bytes of %d", rank, got, alone)
		}
	}
}
