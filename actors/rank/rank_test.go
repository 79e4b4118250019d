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
		return Opened{
			Model: m, Join: (&actortest.Rack{}).Join, Close: func() error { close(g.closed); return nil },
			Facts: actors.RankFacts{WeightBytes: 77, Layers: actortest.Layers},
		}, err
	}
	g.rank = New(o)
	spawned := make(chan *actor.PID, 1)
	g.parent = g.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			pid, _ := ctx.SpawnNamed(g.rank.Props(), "rank/0")
			spawned <- pid
		case *actors.Step, *actors.Join:
			ctx.Request(g.rankPID(ctx), m)
		case *actors.RankReady, *actors.RankFailed, *actors.Joined, *actors.StepDone, *actors.Refused, *actors.Busy:
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
func (g *rig) send(m any)                           { g.sys.Root.Send(g.parent, m) }

// ready waits until the weights are there, and lets the rank join epoch 1 alone.
func (g *rig) ready() actors.RankFacts {
	g.t.Helper()
	r := await[*actors.RankReady](g)
	g.send(&actors.Join{Epoch: 1})
	if j := await[*actors.Joined](g); j.Err != nil || j.Epoch != 1 || len(j.Comms) != 0 {
		g.t.Fatalf("joined: %+v", j)
	}
	return r.Facts
}

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
	if f := g.ready(); f.WeightBytes != 77 || g.rank.State() != "ready" {
		t.Errorf("ready: %+v, state %s", f, g.rank.State())
	}
	for n := uint64(1); n < 4; n++ {
		g.send(step(n, []int32{1, 2}))
		if d := await[*actors.StepDone](g); d.Err != nil || d.Step != n || d.Sampled[0].Token != actortest.Next([]int32{1, 2}, vocab) {
			t.Errorf("step %d: %+v", n, d)
		}
	}
}

func TestRankRefuses(t *testing.T) {
	g := start(t, func(context.Context) (Model, error) { return actortest.NewModel(vocab, limits), nil })
	await[*actors.RankReady](g)
	refused := func(change func(*actors.Plan), want string) {
		t.Helper()
		s := step(4, []int32{1})
		change(s.Plan)
		g.send(s)
		if r := await[*actors.Refused](g); r.Incarnation != 9 || r.Step != s.Plan.Step || r.Epoch != s.Plan.Epoch || !strings.Contains(r.Reason, want) {
			t.Errorf("refused: %+v, want %q", r, want)
		}
	}
	refused(func(*actors.Plan) {}, "plan of epoch 1; the rank is in none")
	g.send(&actors.Join{Epoch: 1})
	await[*actors.Joined](g)
	refused(func(p *actors.Plan) { p.Epoch = 0 }, "plan of epoch 0; the rank is in epoch 1")
	refused(func(p *actors.Plan) { p.Epoch = 2 }, "plan of epoch 2")
	refused(func(p *actors.Plan) { p.Action = actors.Park }, `plan says "park"`)
	g.send(step(4, []int32{1}))
	await[*actors.StepDone](g)
	refused(func(*actors.Plan) {}, "the rank has taken step 4")
	g.send(&actors.Join{Epoch: 1})
	if j := await[*actors.Joined](g); j.Err == nil || j.Err.Error() != "joining epoch 1: the rank has joined epoch 1, or is about to" {
		t.Errorf("a second join of an epoch: %v", j.Err)
	}
}

func TestRankRefusesWhileLoading(t *testing.T) {
	letGo := make(chan struct{})
	g := start(t, func(context.Context) (Model, error) { <-letGo; return actortest.NewModel(vocab, limits), nil })
	g.send(step(0, []int32{1}))
	if r := await[*actors.Refused](g); !strings.Contains(r.Reason, "the rank is loading weights") {
		t.Errorf("refused: %v", r)
	}
	g.send(&actors.Join{Epoch: 1})
	if j := await[*actors.Joined](g); j.Err == nil || !strings.Contains(j.Err.Error(), "the rank is loading weights") {
		t.Errorf("joined: %+v", j)
	}
	close(letGo)
	await[*actors.RankReady](g)
}

// TestRankAnswersWhileItComputes: one step runs, one waits, the third is told so at once.
func TestRankAnswersWhileItComputes(t *testing.T) {
	m, began, letGo := gated()
	g := start(t, func(context.Context) (Model, error) { return m, nil })
	g.ready()
	g.send(step(1, []int32{1}))
	<-began
	g.send(step(2, []int32{1}))
	g.send(step(3, []int32{1}))
	if b := await[*actors.Busy](g); b.Step != 3 {
		t.Errorf("busy: %+v, want step 3", b)
	}
	letGo <- struct{}{}
	<-began
	letGo <- struct{}{}
	for n := uint64(1); n < 3; n++ {
		if d := await[*actors.StepDone](g); d.Step != n || d.Err != nil {
			t.Errorf("done: %+v, want step %d", d, n)
		}
	}
}

func TestStopWaitsForTheStepInFlight(t *testing.T) {
	m, began, letGo := gated()
	g := start(t, func(context.Context) (Model, error) { return m, nil })
	g.ready()
	g.send(step(1, []int32{1}))
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
	g.ready()
	g.send(step(1, []int32{1}))
	<-began
	g.rank.Abandon()
	if d := await[*actors.StepDone](g); !errors.Is(d.Err, context.Canceled) || hal.ClassOf(d.Err) != hal.Aborted || d.Lost {
		t.Errorf("done: %+v, want the step cancelled, which is nobody's fault", d)
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
			g.send(step(1, []int32{1}))
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
		g.ready()
		g.send(step(6, []int32{1}))
		d := await[*actors.StepDone](g)
		if !d.Lost || hal.ClassOf(d.Err) != hal.DeviceLost || !strings.Contains(d.Err.Error(), "rank 0 on node n: step 6: layer 0: attention: cpu:0: MatMul: gone") {
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
	g.ready()
	broken := step(1, []int32{1})
	broken.Batch = nil
	g.send(broken) // on the device thread: the rank is lost, the process lives
	if d := await[*actors.StepDone](g); !d.Lost || d.Err == nil {
		t.Errorf("done: %+v", d)
	}
	await[*actors.RankFailed](g)
	g.sys.Root.Send(g.pid, &result{}) // no StepDone in it: the actor itself panics
	g.send(step(2, []int32{1}))
	if r := await[*actors.Refused](g); !strings.Contains(r.Reason, "panic on the device thread") {
		t.Errorf("after the restart: %v, want the state kept", r)
	}
	if opens != 1 {
		t.Errorf("device opened %d times", opens)
	}
}
