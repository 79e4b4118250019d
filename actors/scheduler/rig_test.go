package scheduler

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a scheduler between a client, an agent and ranks that the test plays.
type rig struct {
	t      *testing.T
	sys    *actors.System
	pid    *actor.PID
	steps  chan *actors.Step   // of the engine's first rank
	peers  []chan *actors.Step // of all ranks
	told   chan *actors.Progress
	agent  chan any // what the agent hears and does not answer itself
	at     uint64   // last step that the agent has planned; its own
	asked  chan any // what the client hears but Progress
	client *actor.PID
	ledger *Ledger
	gaveUp chan error
	called bool // for step 1; else that comes behind the first request
}

// layout is what rigs differ in.
type layout struct {
	text   func() func(id int32) string
	ranks  int          // of the engine, 0 is 1
	group  int          // ranks of the group, 0 is those of the engine
	byHand bool         // the test answers votes; else the agent does, as for a group of this engine alone, and answers wakes
	log    slog.Handler // of the scheduler, nil discards
}

const engineNo = 2 // and its first rank has number 8

func newRig(t *testing.T, l layout) *rig {
	l.ranks = max(l.ranks, 1)
	l.group = max(l.group, l.ranks)
	if l.log == nil {
		l.log = slog.DiscardHandler
	}
	log := slog.New(l.log)
	g := &rig{
		t: t, sys: actors.NewSystem(log), told: make(chan *actors.Progress, 64), agent: make(chan any, 64), asked: make(chan any, 8),
		gaveUp: make(chan error, 1),
	}
	root := g.sys.Root
	var ranks []*actor.PID
	for range l.ranks {
		steps := make(chan *actors.Step, 16)
		g.peers = append(g.peers, steps)
		ranks = append(ranks, root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if s, ok := ctx.Message().(*actors.Step); ok {
				steps <- s
			}
		})))
	}
	g.steps = g.peers[0]
	agent := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) { g.onAgent(ctx, l.byHand) }))
	g.client = root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actors.Progress:
			g.told <- m
		case *actors.Drained:
			g.asked <- m
		}
	}))
	set := Settings{
		Engine: engineNo, Epoch: 1, GroupRanks: l.group, ModelLen: 32, MaxNumBatchedTokens: 16, MaxNumSeqs: 4, BlockSize: 4, KVBlocks: 16,
		EOS: []int32{0},
	}
	g.ledger = NewLedger(engineNo, set.KVBlocks)
	strategy := &actors.Supervision{Budget: 1, Window: 1 << 40, Delay: 1, MaxDelay: 1, Logger: log, GiveUp: func(_ *actor.PID, err error) { g.gaveUp <- err }}
	spawned := make(chan *actor.PID, 1)
	parent := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			spawned <- ctx.Spawn(Props(Options{
				Settings: set, Node: "n", FirstRank: 8, Ranks: ranks, Agent: agent, Ledger: g.ledger, Logger: log, NewText: l.text,
			}))
		}
	}, actor.WithSupervisor(strategy)))
	g.pid = <-spawned
	t.Cleanup(func() {
		for _, pid := range append([]*actor.PID{parent, agent, g.client}, ranks...) {
			if err := root.StopFuture(pid).Wait(); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		strategy.Close()
		g.sys.Shutdown()
		if e := g.stats().Engines[0]; e.KVBlocksFree != e.KVBlocks {
			t.Errorf("%d of %d KV blocks are free at the end", e.KVBlocksFree, e.KVBlocks)
		}
	})
	g.called = l.byHand
	if g.called {
		g.send(&actors.Called{Epoch: 1, Wave: 1, Step: 1})
	}
	return g
}

// onAgent answers votes with plans and wakes with calls, or leaves that to the test.
func (g *rig) onAgent(ctx actor.Context, byHand bool) {
	switch m := ctx.Message().(type) {
	case *actors.Vote:
		if byHand {
			g.agent <- m
			return
		}
		g.at = m.Step
		ctx.Send(g.pid, &actors.Planned{Plan: planFor(m)})
	case *actors.Wake:
		if byHand {
			g.agent <- m
			return
		}
		ctx.Send(g.pid, &actors.Called{Epoch: 1, Step: g.at + 1})
	case *actors.Broken:
		g.agent <- m
	}
}

// planFor makes the plan of a vote without others.
func planFor(v *actors.Vote) *actors.Plan {
	p := &actors.Plan{
		Epoch: v.Epoch, Wave: 1, Step: v.Step, Action: actors.Park, Members: []int{v.Engine}, Rows: []int{v.Rows}, Drain: []bool{v.Drain},
		PadTo: max(1, v.Rows), Exchange: topology.Local, Stages: 1,
	}
	if v.Rows > 0 || v.Queue > 0 {
		p.Action = actors.Run
	}
	return p
}

// letters spells token n as the nth letter of the alphabet; token 30 makes it panic.
func letters() func(int32) string {
	return func(id int32) string {
		if id == 30 {
			panic("no such letter")
		}
		return string('a' + id - 1)
	}
}

func (g *rig) stats() (s actors.Stats) {
	g.ledger.AddTo(&s)
	return s
}

func (g *rig) send(m any) { g.sys.Root.Send(g.pid, m) }

func (g *rig) submit(id actors.RequestID, r actors.Request) {
	g.sys.Root.RequestWithCustomSender(g.pid, &actors.Submit{ID: id, Prompt: []int32{1, 2}, Request: &r}, g.client)
	if !g.called {
		g.called = true
		g.send(&actors.Called{Epoch: 1, Wave: 1, Step: 1})
	}
}

func (g *rig) drain() { g.sys.Root.RequestWithCustomSender(g.pid, &actors.Drain{}, g.client) }

// padding is the token of a row that ran as padding.
const padding = -7

// done is a rank's answer to a step, with a token for each row that samples.
func done(s *actors.Step, tokens ...int32) *actors.StepDone {
	d := &actors.StepDone{Rank: 8, Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation}
	for _, r := range s.Batch.Rows {
		if r.Sample {
			out := actors.Sampled{Request: r.Request, Token: tokens[0], Masked: tokens[0] == padding}
			d.Sampled, tokens = append(d.Sampled, out), tokens[1:]
		}
	}
	return d
}

// answer gives the step that the first rank got its tokens.
func (g *rig) answer(s *actors.Step, tokens ...int32) { g.send(done(s, tokens...)) }

// hear returns what the agent hears next.
func hear[M any](g *rig) M {
	g.t.Helper()
	m, ok := (<-g.agent).(M)
	if !ok {
		g.t.Fatalf("the agent hears something else than %T", m)
	}
	return m
}

// vote checks the vote that the agent hears next.
func (g *rig) vote(step uint64, rows int) *actors.Vote {
	g.t.Helper()
	v := hear[*actors.Vote](g)
	if v.Epoch != 1 || v.Engine != engineNo || v.Step != step || v.Rows != rows {
		g.t.Fatalf("vote %+v, want one of %d rows for step %d", v, rows, step)
	}
	return v
}

// show writes a chunk on one line.
func show(p *actors.Progress) string {
	s := fmt.Sprintf("%d %v %q %s", p.ID, p.Chunk.Tokens, p.Chunk.Text, p.Chunk.Finish)
	if p.Chunk.Err != nil {
		s += ": " + p.Chunk.Err.Error()
	}
	return strings.TrimSpace(s)
}

func (g *rig) expect(want ...string) {
	g.t.Helper()
	for _, w := range want {
		if got := show(<-g.told); got != w {
			g.t.Errorf("chunk %s\nwant  %s", got, w)
		}
	}
}
