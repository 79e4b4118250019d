package deepseek_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/model/weights/weightstest"
	"github.com/moerack/moerack/topology"
)

// TestQuantized: every tensor of the network once, linear layers in int8, and the latent's up-projection in two.
func TestQuantized(t *testing.T) {
	c := base()
	pieces, err := deepseek.Quantized(c)
	if err != nil {
		t.Fatal(err)
	}
	seen, used := map[string]bool{}, map[string]bool{}
	for _, p := range pieces {
		if seen[p.To] {
			t.Errorf("%s comes twice", p.To)
		}
		seen[p.To], used[p.Name] = true, true
		want := weights.Int8
		switch {
		case p.Vector || strings.HasSuffix(p.To, ".mlp.gate.weight"):
			want = weights.Stored
		case p.To == "model.embed_tokens.weight" || strings.HasSuffix(p.To, ".k_b_proj.weight"):
			want = weights.BFloat16
		}
		if p.Form != want {
			t.Errorf("%s in form %s, want %s", p.To, p.Form, want)
		}
		size, h := c.QKNopeHeadDim+c.VHeadDim, weights.Heads{}
		switch {
		case strings.HasSuffix(p.To, ".k_b_proj.weight"):
			h = weights.Heads{Size: size, To: c.QKNopeHeadDim}
		case strings.HasSuffix(p.To, ".v_b_proj.weight"):
			h = weights.Heads{Size: size, From: c.QKNopeHeadDim, To: size}
		}
		if p.Heads != h {
			t.Errorf("%s is made of rows %+v, want %+v", p.To, p.Heads, h)
		}
	}
	for _, w := range newCheckpoint(1, c, "BF16").tensors {
		if !used[w.Name] {
			t.Errorf("%s is not used", w.Name)
		}
		delete(used, w.Name)
	}
	if len(used) > 0 {
		t.Errorf("used, but not there: %v", used)
	}
	c.Quantization = config.Quantization{W8A8: true}
	if _, err := deepseek.Quantized(c); err == nil || !strings.Contains(err.Error(), "quantized already") {
		t.Errorf("twice: %v", err)
	}
}

// TestConversionBytes: ranks of one process share what is converted, and each holds its own experts.
func TestConversionBytes(t *testing.T) {
	c := base()
	dir := t.TempDir()
	if err := weightstest.Write(filepath.Join(dir, "model.safetensors"), newCheckpoint(1, c, "BF16").tensors...); err != nil {
		t.Fatal(err)
	}
	k, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	bytes := func(f weights.Form, l topology.Layout, ranks ...int) int64 {
		var places []topology.Place
		for _, r := range ranks {
			places = append(places, l.Place(r))
		}
		return deepseek.ConversionBytes(c, k, places, f)
	}
	one := topology.Layout{DataParallel: 1, TensorParallel: 1}
	all := bytes(weights.Int8, one, 0)
	if n := bytes(weights.BFloat16, one, 0) + bytes(weights.Stored, one, 0); all == 0 || n != 0 {
		t.Errorf("%d bytes of int8, %d of what is used in place", all, n)
	}
	ep := topology.Layout{DataParallel: 2, TensorParallel: 1, ExpertParallel: true}
	expert := int64(3*c.MoEIntermediateSize*c.HiddenSize + 4*(2*c.MoEIntermediateSize+c.HiddenSize))
	others := expert * int64(c.NumRoutedExperts/2*(c.NumLayers-c.FirstKDenseReplace))
	for what, got := range map[string][2]int64{
		"two engines":              {bytes(weights.Int8, topology.Layout{DataParallel: 2, TensorParallel: 1}, 0, 1), all},
		"two engines' experts":     {bytes(weights.Int8, ep, 0, 1), all},
		"one of the ranks":         {bytes(weights.Int8, ep, 1), all - others},
		"a place that has no room": {bytes(weights.Int8, topology.Layout{DataParallel: 1, TensorParallel: 7}, 0), 0},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d bytes, want %d", what, got[0], got[1])
		}
	}
	if n, _ := k.Converted(); n != 0 {
		t.Errorf("the estimate converted %d matrices", n)
	}
}
