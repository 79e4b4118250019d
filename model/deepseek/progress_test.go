package deepseek_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

var localStep = nn.Step{Number: 9, Exchange: topology.Local, Stages: 1}

// TestProgress: a step shows every op of its list in order, waits in "sample", and is over after Share.
func TestProgress(t *testing.T) {
	c := base()
	m, err := newCheckpoint(5, c, "BF16").open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	var seen []nn.Op
	m.Observe(func(deepseek.Point, int, hal.Tensor) {
		p := m.Progress().Read()
		if !p.Running || p.Step != 9 {
			t.Errorf("inside step 9: %+v", p)
		}
		seen = append(seen, p.Op)
	})
	b := &nn.Batch{}
	feed(b, prompt)
	if _, err := m.Forward(t.Context(), b, localStep); err != nil {
		t.Fatal(err)
	}
	want := []nn.Op{
		{Name: nn.OpEmbed, Layer: -1},
		{Name: nn.OpMLP, Layer: 0},
		{Name: nn.OpRoute, Layer: 1},
		{Name: nn.OpRoute, Layer: 1},
		{Name: nn.OpRoute, Layer: 1},
		{Name: nn.OpCombine, Layer: 1},
		{Name: nn.OpRoute, Layer: 2},
		{Name: nn.OpRoute, Layer: 2},
		{Name: nn.OpRoute, Layer: 2},
		{Name: nn.OpCombine, Layer: 2},
		{Name: nn.OpLogits, Layer: -1},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("at the observed points the model said\n%v\nwant\n%v", seen, want)
	}
	list := deepseek.Ops(c, alone, localStep)
	p := m.Progress().Read()
	if !p.Running || p.Op.Name != nn.OpSample || p.Index != len(list)-1 || p.Moves < uint64(len(list)+1) {
		t.Errorf("after Forward: %+v, want sample, the last of %d ops", p, len(list))
	}
	before := p.Moves
	if err := m.Share(t.Context(), []int32{1}); err != nil {
		t.Fatal(err)
	}
	if p := m.Progress().Read(); p.Running || p.Step != 9 || p.Moves != before+1 {
		t.Errorf("after Share: %+v, want step 9 to be over", p)
	}
	if err := m.Share(t.Context(), make([]int32, limits.Samples+1)); err == nil {
		t.Error("more tokens than a step can have were shared")
	}
}

// TestFailedStep: the error names op and layer, the step is over, the cause is kept.
func TestFailedStep(t *testing.T) {
	c := base()
	m, err := newCheckpoint(5, c, "BF16").open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no more")
	ctx, cancel := context.WithCancelCause(t.Context())
	m.Observe(func(p deepseek.Point, layer int, _ hal.Tensor) {
		if p == deepseek.RouterIDs && layer == 2 {
			cancel(cause)
		}
	})
	b := &nn.Batch{}
	feed(b, prompt)
	_, err = m.Forward(ctx, b, localStep)
	var at *nn.OpError
	if !errors.As(err, &at) || at.Op != (nn.Op{Name: nn.OpRoute, Layer: 2}) || !errors.Is(err, context.Canceled) && !errors.Is(err, cause) {
		t.Errorf("error %v, want one of op route of layer 2", err)
	}
	if p := m.Progress().Read(); p.Running {
		t.Errorf("after a failed step: %+v, want none running", p)
	}
}

// TestEndedInsideAnOp: a context that ends while the device computes ends the op, not only the one after it.
func TestEndedInsideAnOp(t *testing.T) {
	c := base()
	p := &pulsing{}
	m, err := newCheckpoint(5, c, "BF16").load(t, c, alone, func(d hal.Device) hal.Device {
		p.Device = d
		return p
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	pulses := 0
	p.each = func() {
		if pulses++; pulses == 7 {
			cancel()
		}
	}
	b := &nn.Batch{}
	feed(b, prompt)
	_, err = m.Forward(ctx, b, localStep)
	var at *nn.OpError
	if !errors.As(err, &at) || hal.ClassOf(err) != hal.Aborted || !errors.Is(err, context.Canceled) || pulses != 7 {
		t.Errorf("after %d pulses: %v, want an abort of an op because of the context at the 7th", pulses, err)
	}
	if _, err := m.Forward(t.Context(), b, localStep); err != nil {
		t.Errorf("the next step: %v", err)
	}
}

// pulsing does something before each pulse.
type pulsing struct {
	hal.Device
	each func()
}

// Pulse puts each before f.
func (p *pulsing) Pulse(f func(waits bool) error) {
	p.Device.Pulse(func(waits bool) error {
		p.each()
		return f(waits)
	})
}

// TestLoadCounts: experts serve K rows for each real row and layer, and none for padding.
func TestLoadCounts(t *testing.T) {
	c := base()
	m, err := newCheckpoint(5, c, "BF16").open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	b := &nn.Batch{}
	feed(b, prompt)
	b.Pad(b.Rows() + 5)
	for steps := 1; steps <= 2; steps++ {
		if _, err := forward(t.Context(), m, b); err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, rows := range m.Load().Rows() {
			sum += rows
		}
		if want := int64(steps * 2 * len(prompt) * c.NumExpertsPerTok); sum != want || len(m.Load().Rows()) != c.NumRoutedExperts {
			t.Errorf("after %d steps %d experts served %d rows in two layers, want %d", steps, len(m.Load().Rows()), sum, want)
		}
	}
}
