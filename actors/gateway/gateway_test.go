package gateway

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/moerack/moerack/actors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a gateway over engines that the test plays.
type rig struct {
	t          *testing.T
	sys        *actors.System
	pid        *actor.PID
	engines    []*actor.PID
	submits    []chan *actors.Submit
	aborts     []chan actors.RequestID
	allAborted chan struct{}
	asker      *actor.PID
}

func newRig(t *testing.T, engines int) *rig { return newRigFrom(t, 0, engines) }

// newRigFrom makes a rig of a node whose first engine has number first.
func newRigFrom(t *testing.T, first, engines int) *rig {
	log := slog.New(slog.DiscardHandler)
	g := &rig{t: t, sys: actors.NewSystem(log), allAborted: make(chan struct{}, 4)}
	root := g.sys.Root
	for range engines {
		submits, aborts := make(chan *actors.Submit, 64), make(chan actors.RequestID, 64)
		g.submits, g.aborts = append(g.submits, submits), append(g.aborts, aborts)
		g.engines = append(g.engines, root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actors.Submit:
				submits <- m
			case *actors.Abort:
				aborts <- m.ID
			}
		})))
	}
	strategy := &actors.Supervision{Budget: 5, Window: 1 << 40, Delay: 1, MaxDelay: 1, Logger: log, GiveUp: func(*actor.PID, error) {}}
	spawned := make(chan *actor.PID, 1)
	parent := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			spawned <- ctx.Spawn(Props(Options{First: first, Engines: g.engines, Logger: log}))
		}
	}, actor.WithSupervisor(strategy)))
	g.pid = <-spawned
	g.asker = root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actors.AbortAll:
			ctx.Request(g.pid, &actors.AbortAll{})
		case *actors.AllAborted:
			g.allAborted <- struct{}{}
		}
	}))
	t.Cleanup(func() {
		for _, pid := range append(g.engines, parent, g.asker) {
			if err := root.StopFuture(pid).Wait(); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		strategy.Close()
		g.sys.Shutdown()
	})
	return g
}

func (g *rig) send(m any) { g.sys.Root.Send(g.pid, m) }

func (g *rig) open(prompt int, r actors.Request) *Stream {
	s := NewStream(func(s *Stream) { g.send(&Cancel{s}) }, nil, nil)
	g.send(&Open{Prompt: make([]int32, prompt), Request: &r, Stream: s})
	return s
}

func (g *rig) progress(id actors.RequestID, c actors.Chunk) {
	g.send(&actors.Progress{ID: id, Chunk: c})
}

func recv(t *testing.T, s *Stream) actors.Chunk {
	t.Helper()
	c, err := s.Recv(t.Context())
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	return c
}

func TestForwards(t *testing.T) {
	g := newRig(t, 1)
	s := g.open(3, actors.Request{MaxTokens: 2})
	m := <-g.submits[0]
	g.progress(m.ID, actors.Chunk{Tokens: []int32{4}, Text: "a"})
	g.progress(m.ID, actors.Chunk{Tokens: []int32{5}, Text: "b", Finish: actors.FinishLength})
	g.progress(m.ID, actors.Chunk{Finish: actors.FinishError}) // after the last: not for the client
	if c := recv(t, s); len(c.Prompt) != 3 || c.Text != "a" {
		t.Errorf("first chunk %+v, want the prompt in it", c)
	}
	if c := recv(t, s); c.Prompt != nil || c.Finish != actors.FinishLength {
		t.Errorf("last chunk %+v", c)
	}
	if _, err := s.Recv(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("then %v", err)
	}
}

func TestPicksTheLeastOutstanding(t *testing.T) {
	g := newRig(t, 2)
	one := 1
	g.open(10, actors.Request{MaxTokens: 10}) // engine 0: 20, ties go to the lower
	first := <-g.submits[0]
	g.open(5, actors.Request{MaxTokens: 10}) // engine 1: 15
	<-g.submits[1]
	g.open(1, actors.Request{MaxTokens: 1}) // engine 1: 17
	<-g.submits[1]
	g.open(1, actors.Request{MaxTokens: 3, Engine: &one}) // as asked; engine 1: 21
	<-g.submits[1]
	g.open(2, actors.Request{MaxTokens: 1}) // engine 0: 23
	<-g.submits[0]
	g.progress(first.ID, actors.Chunk{Tokens: []int32{1, 2, 3}}) // engine 0: 20
	g.open(1, actors.Request{MaxTokens: 0})                      // engine 0: 21
	<-g.submits[0]
	g.progress(first.ID, actors.Chunk{Finish: actors.FinishStop}) // engine 0: 4
	for range 4 {
		g.open(2, actors.Request{MaxTokens: 2})
		<-g.submits[0]
	}
}

// TestEnginesOfANode: engines have their numbers in the layout, also on a node that has not the first of them.
func TestEnginesOfANode(t *testing.T) {
	g := newRigFrom(t, 4, 2)
	five := 5
	s := g.open(1, actors.Request{MaxTokens: 1, Engine: &five})
	m := <-g.submits[1]
	g.progress(m.ID, actors.Chunk{Tokens: []int32{7}, Finish: actors.FinishLength})
	if c := recv(t, s); c.Engine != 5 {
		t.Errorf("answered by engine %d, want 5", c.Engine)
	}
	g.send(&actors.EngineGone{Engine: 5, Err: errors.New("gave up")})
	if c := recv(t, g.open(1, actors.Request{Engine: &five})); c.Finish != actors.FinishError || c.Engine != 5 {
		t.Errorf("a request for an engine that is gone: %+v", c)
	}
	g.open(1, actors.Request{MaxTokens: 1})
	<-g.submits[0]
}

func TestCancel(t *testing.T) {
	g := newRig(t, 1)
	s := g.open(1, actors.Request{MaxTokens: 2})
	m := <-g.submits[0]
	s.Cancel()
	if id := <-g.aborts[0]; id != m.ID {
		t.Errorf("abort of request %d, want %d", id, m.ID)
	}
	g.progress(m.ID, actors.Chunk{Finish: actors.FinishAbort})
	if c := recv(t, s); c.Finish != actors.FinishAbort || len(c.Prompt) != 1 {
		t.Errorf("last chunk %+v", c)
	}
	s.Cancel() // of nothing
	g.open(1, actors.Request{})
	<-g.submits[0]
	if len(g.aborts[0]) != 0 {
		t.Error("a request that had ended was aborted")
	}
}

func TestEngineGone(t *testing.T) {
	g := newRig(t, 2)
	a, b := g.open(1, actors.Request{MaxTokens: 1}), g.open(1, actors.Request{MaxTokens: 1})
	<-g.submits[0]
	m := <-g.submits[1]
	g.send(&actors.EngineGone{Engine: 0, Err: errors.New("node n: actor scheduler/0: gave up")})
	if c := recv(t, a); c.Finish != actors.FinishError || !strings.Contains(c.Err.Error(), "scheduler/0") {
		t.Errorf("its request: %+v", c)
	}
	g.open(9, actors.Request{})
	<-g.submits[1] // the living one
	zero := 0
	if c := recv(t, g.open(1, actors.Request{Engine: &zero})); c.Finish != actors.FinishError {
		t.Errorf("a request for it: %+v", c)
	}
	g.progress(m.ID, actors.Chunk{Finish: actors.FinishLength})
	if c := recv(t, b); c.Finish != actors.FinishLength || c.Engine != 1 {
		t.Errorf("the other engine's request: %+v", c)
	}
}

func TestDrain(t *testing.T) {
	g := newRig(t, 1)
	s := g.open(1, actors.Request{MaxTokens: 1})
	m := <-g.submits[0]
	g.sys.Root.Send(g.asker, &actors.AbortAll{})
	if id := <-g.aborts[0]; id != m.ID {
		t.Errorf("abort of request %d, want %d", id, m.ID)
	}
	if c := recv(t, g.open(1, actors.Request{})); c.Finish != actors.FinishAbort {
		t.Errorf("a request while all are aborted: %+v", c)
	}
	select {
	case <-g.allAborted:
		t.Error("all aborted, it says, with a request running")
	default:
	}
	g.progress(m.ID, actors.Chunk{Finish: actors.FinishAbort})
	<-g.allAborted
	if c := recv(t, s); c.Finish != actors.FinishAbort {
		t.Errorf("the running one: %+v", c)
	}
	g.sys.Root.Send(g.asker, &actors.AbortAll{}) // with nothing left
	<-g.allAborted
}

// TestRestart: a panic ends all streams and tells the engines; numbers go on, so an engine's late word meets nobody.
func TestRestart(t *testing.T) {
	g := newRig(t, 1)
	s := g.open(1, actors.Request{MaxTokens: 1})
	old := <-g.submits[0]
	beyond := 7 // Check refuses it; here it breaks an invariant
	broken := g.open(2, actors.Request{Engine: &beyond})
	for _, stream := range []*Stream{s, broken} {
		if c := recv(t, stream); c.Finish != actors.FinishError || !errors.Is(c.Err, errFailed) || c.Prompt == nil {
			t.Errorf("chunk %+v, want the failure", c)
		}
	}
	if id := <-g.aborts[0]; id != old.ID {
		t.Errorf("abort of %d, want %d", id, old.ID)
	}
	next := g.open(1, actors.Request{MaxTokens: 1})
	m := <-g.submits[0]
	if m.ID <= old.ID {
		t.Errorf("request number %d after %d", m.ID, old.ID)
	}
	g.progress(old.ID, actors.Chunk{Tokens: []int32{9}})
	g.progress(m.ID, actors.Chunk{Tokens: []int32{8}, Finish: actors.FinishLength})
	if c := recv(t, next); !slices.Equal(c.Tokens, []int32{8}) {
		t.Errorf("chunk %+v", c)
	}
}
