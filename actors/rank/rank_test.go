package rank

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a rank under a parent that passes on what it is told.
type rig struct {
	t      *testing.T
	sys    *actors.System
	rank   *Rank
	pid    *actor.PID // of the rank
	parent *actor.PID
	told   chan any
	closed chan struct{} // the device was closed
}

func start(t *testing.T, open func(ctx context.Context) (Model, error)) *rig {
	g := &rig{t: t, sys: actors.NewSystem(options().Logger), told: make(chan any, 16), closed: make(chan struct{})}
	o := options()
	o.Open = func(ctx context.Context) (Opened, error) {
		m, err := open(ctx)
		return Opened{Model: m, Close: func() error { close(g.closed); return nil }, Facts: actors.RankFacts{WeightBytes: 77, Layers: actortest.Layers}}, err
	}
	g.rank = New(o)
	spawned := make(chan *actor.PID, 1)
	g.parent = g.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			pid, _ := ctx.SpawnNamed(g.rank.Props(), "rank/0")
			spawned <- pid
		case *actors.Step:
			ctx.Request(g.rankPID(ctx), m)
		case *actors.RankReady, *actors.RankFailed, *actors.StepDone, *actors.Refused, *actors.Busy:
			g.told <- m
		}
	}))
	g.pid = <-spawned
	t.Cleanup(func() {
		g.sys.Root.Stop(g.parent)
		<-g.rank.Done()
		g.sys.Shutdown()
	})
	return g
}

func (g *rig) rankPID(ctx actor.Context) *actor.PID { return ctx.Children()[0] }
func (g *rig) send(s *actors.Step)                  { g.sys.Root.Send(g.parent, s) }

func await[M any](g *rig) M {
	g.t.Helper()
	m, ok := (<-g.told).(M)
	if !ok {
		g.t.Fatalf("told something else than %T", m)
	}
	return m
}

// gated is a model whose steps say when they begin and wait to be let go.
func gated() (m *actortest.Model, began, letGo chan struct{}) {
	m, began, letGo = actortest.NewModel(vocab, limits), make(chan struct{}), make(chan struct{})
	m.Before = func(ctx context.Context, _ int, _ *nn.Batch) error {
		began <- struct{}{}
		select {
		case <-letGo:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return m, began, letGo
}

func TestRankRunsSteps(t *testing.T) {
	g := start(t, func(context.Context) (Model, error) { return actortest.NewModel(vocab, limits), nil })
	if r := await[*actors.RankReady](g); r.Facts.WeightBytes != 77 || g.rank.State() != "ready" {
		t.Errorf("ready: %+v, state %s", r, g.rank.State())
	}
	for n := range uint64(3) {
		g.send(step(n, []int32{1, 2}))
		if d := await[*actors.StepDone](g); d.Err != nil || d.Step != n || d.Sampled[0].Token != actortest.Next([]int32{1, 2}, vocab) {
			t.Errorf("step %d: %+v", n, d)
		}
	}
}

func TestRankRefuses(t *testing.T) {
	g := start(t, func(context.Context) (Model, error) { return actortest.NewModel(vocab, limits), nil })
	await[*actors.RankReady](g)
	for _, tt := range []struct {
		change func(*actors.Plan)
		want   string
	}{
		{func(p *actors.Plan) { p.Epoch = 0 }, "step 4 refused in epoch 1: plan of epoch 0; rank 0 on node n is in epoch 1"},
		{func(p *actors.Plan) { p.Epoch = 2 }, "plan of epoch 2"},
		{func(p *actors.Plan) { p.Action = actors.Park }, `plan says "park"`},
	} {
		s := step(4, []int32{1})
		tt.change(&s.Plan)
		g.send(s)
		if r := await[*actors.Refused](g); r.Incarnation != 9 || !strings.Contains(r.Error(), tt.want) {
			t.Errorf("refused: %v, want %q", r, tt.want)
		}
	}
}

func TestRankRefusesWhileLoading(t *testing.T) {
	letGo := make(chan struct{})
	g := start(t, func(context.Context) (Model, error) { <-letGo; return actortest.NewModel(vocab, limits), nil })
	g.send(step(0, []int32{1}))
	if r := await[*actors.Refused](g); !strings.Contains(r.Reason, "rank 0 on node n is loading weights") {
		t.Errorf("refused: %v", r)
	}
	close(letGo)
	await[*actors.RankReady](g)
}

// TestRankAnswersWhileItComputes: one step runs, one waits, the third is told so at once.
func TestRankAnswersWhileItComputes(t *testing.T) {
	m, began, letGo := gated()
	g := start(t, func(context.Context) (Model, error) { return m, nil })
	await[*actors.RankReady](g)
	g.send(step(0, []int32{1}))
	<-began
	g.send(step(1, []int32{1}))
	g.send(step(2, []int32{1}))
	if b := await[*actors.Busy](g); b.Step != 2 {
		t.Errorf("busy: %+v, want step 2", b)
	}
	letGo <- struct{}{}
	<-began
	letGo <- struct{}{}
	for n := range uint64(2) {
		if d := await[*actors.StepDone](g); d.Step != n || d.Err != nil {
			t.Errorf("done: %+v, want step %d", d, n)
		}
	}
}

func TestStopWaitsForTheStepInFlight(t *testing.T) {
	m, began, letGo := gated()
	g := start(t, func(context.Context) (Model, error) { return m, nil })
	await[*actors.RankReady](g)
	g.send(step(0, []int32{1}))
	<-began
	if err := g.sys.Root.StopFuture(g.pid).Wait(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	select {
	case <-g.closed:
		t.Error("device closed while a step ran")
	default:
	}
	letGo <- struct{}{}
	<-g.rank.Done()
	<-g.closed
	if m.Closed() != 1 || g.rank.State() != "stopping" {
		t.Errorf("model closed %d times, state %s", m.Closed(), g.rank.State())
	}
}

func TestAbandonEndsTheStepInFlight(t *testing.T) {
	m, began, _ := gated()
	g := start(t, func(context.Context) (Model, error) { return m, nil })
	await[*actors.RankReady](g)
	g.send(step(0, []int32{1}))
	<-began
	g.rank.Abandon()
	if d := await[*actors.StepDone](g); !errors.Is(d.Err, context.Canceled) {
		t.Errorf("done: %+v, want the step cancelled", d)
	}
}

func TestRankFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(context.Context) (Model, error)
		want string
	}{
		{"error", func(context.Context) (Model, error) { return nil, errors.New("loading weights: short file") }, "rank 0 on node n: loading weights: short file"},
		{"panic", func(context.Context) (Model, error) { panic("bad header") }, "rank 0 on node n: while loading: panic on the device thread: bad header"},
	} {
		t.Run("open: "+tt.name, func(t *testing.T) {
			g := start(t, tt.open)
			if f := await[*actors.RankFailed](g); f.Err.Error() != tt.want {
				t.Errorf("failed: %v, want %s", f.Err, tt.want)
			}
			<-g.rank.Done()
			g.send(step(0, []int32{1}))
			if r := await[*actors.Refused](g); !strings.Contains(r.Reason, tt.want) {
				t.Errorf("a step then: %v", r)
			}
		})
	}
	t.Run("device lost", func(t *testing.T) {
		m := actortest.NewModel(vocab, limits)
		m.Before = func(context.Context, int, *nn.Batch) error {
			return &hal.Error{Op: "MatMul", Device: "cpu:0", Class: hal.DeviceLost, Detail: "gone"}
		}
		g := start(t, func(context.Context) (Model, error) { return m, nil })
		await[*actors.RankReady](g)
		g.send(step(6, []int32{1}))
		d := await[*actors.StepDone](g)
		if !d.Lost || hal.ClassOf(d.Err) != hal.DeviceLost || !strings.Contains(d.Err.Error(), "rank 0 on node n: step 6: cpu:0: MatMul: gone") {
			t.Errorf("done: %+v", d)
		}
		if f := await[*actors.RankFailed](g); hal.ClassOf(f.Err) != hal.DeviceLost {
			t.Errorf("failed: %v", f.Err)
		}
	})
}

// TestRestartKeepsState: an incarnation after a panic of the actor opens no device again and knows what the former knew.
func TestRestartKeepsState(t *testing.T) {
	opens := 0
	g := start(t, func(context.Context) (Model, error) { opens++; return actortest.NewModel(vocab, limits), nil })
	await[*actors.RankReady](g)
	broken := step(0, []int32{1})
	broken.Batch = nil
	g.send(broken) // on the device thread: the rank is lost, the process lives
	if d := await[*actors.StepDone](g); !d.Lost || d.Err == nil {
		t.Errorf("done: %+v", d)
	}
	await[*actors.RankFailed](g)
	g.sys.Root.Send(g.pid, &result{}) // no StepDone in it: the actor itself panics
	g.send(step(1, []int32{1}))
	if r := await[*actors.Refused](g); !strings.Contains(r.Reason, "panic on the device thread") {
		t.Errorf("after the restart: %v, want the state kept", r)
	}
	if opens != 1 {
		t.Errorf("device opened %d times", opens)
	}
}
