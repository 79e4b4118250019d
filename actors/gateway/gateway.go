package gateway

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
)

// Options describe a gateway.
type Options struct {
	First   int          // the number of the node's first engine
	Engines []*actor.PID // schedulers of the node's engines First, First+1, …
	Logger  *slog.Logger
}

// Open brings a checked request to the gateway. The stream is told everything else.
type Open struct {
	Prompt  []int32 // as Check returned it
	Request *actors.Request
	Stream  *Stream
}

// Cancel ends the request of a stream.
type Cancel struct {
	Stream *Stream
}

// errFailed is what the requests of an incarnation that panicked end with.
var errFailed = errors.New("the gateway failed and restarts")

// Props make the gateway's actor. An incarnation that fails ends its streams with an error; request numbers go on. They are
// used for one spawn.
func Props(o Options) *actor.Props {
	l := &life{opts: o, gone: make([]error, len(o.Engines))}
	return actor.PropsFromProducer(func() actor.Actor {
		return &incarnation{life: l, byID: map[actors.RequestID]*request{}, byStream: map[*Stream]*request{}, load: make([]int, len(o.Engines))}
	})
}

// life is what outlives a restart of the actor.
type life struct {
	opts   Options
	last   actors.RequestID
	gone   []error // why an engine of the node takes nothing more
	closed bool    // the gateway takes nothing more
}

// request is one that runs. Its token log is all that an engine would need to go on with it.
type request struct {
	id      actors.RequestID
	stream  *Stream
	engine  int // its place among the node's
	prompt  []int32
	log     []int32 // tokens so far
	most    int     // max_tokens
	started bool    // a chunk has been forwarded
}

// outstanding is the work left in tokens, at most.
func (r *request) outstanding() int { return len(r.prompt) + r.most - len(r.log) }

// incarnation is the gateway's actor between two restarts.
type incarnation struct {
	*life
	byID     map[actors.RequestID]*request
	byStream map[*Stream]*request
	load     []int        // outstanding tokens of each engine
	aborting []*actor.PID // who waits for the last request to end
	current  *Open        // being handled
}

// Receive implements actor.Actor. It never waits.
func (g *incarnation) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
	case *Open:
		g.current = m
		g.onOpen(ctx, m)
		g.current = nil
	case *actors.Progress:
		g.onProgress(ctx, m)
	case *Cancel:
		g.onCancel(ctx, m)
	case *actors.EngineGone:
		g.onEngineGone(ctx, m)
	case *actors.AbortAll:
		g.onAbortAll(ctx)
	case *actor.Restarting:
		g.onEnd(ctx, errFailed)
	case *actor.Stopping:
		g.onEnd(ctx, errors.New("the gateway has stopped"))
	case *actor.Stopped:
	default:
		g.opts.Logger.Error("unexpected message", "message", fmt.Sprintf("%T", m))
	}
}

func (g *incarnation) onOpen(ctx actor.Context, m *Open) {
	if g.closed {
		m.Stream.push(actors.Chunk{Prompt: m.Prompt, Finish: actors.FinishAbort})
		return
	}
	engine, err := g.pick(m.Request.Engine)
	if err != nil {
		m.Stream.push(actors.Chunk{Prompt: m.Prompt, Finish: actors.FinishError, Err: err, Engine: g.opts.First + engine})
		return
	}
	g.last++
	r := &request{id: g.last, stream: m.Stream, engine: engine, prompt: m.Prompt, most: m.Request.MaxTokens}
	g.byID[r.id], g.byStream[r.stream] = r, r
	g.load[engine] += r.outstanding()
	ctx.Request(g.opts.Engines[engine], &actors.Submit{ID: r.id, Prompt: r.prompt, Request: m.Request})
}

// pick returns the engine that was asked for, or the living one with the least outstanding tokens, ties to the lower, by its
// place among the node's.
func (g *incarnation) pick(wanted *int) (int, error) {
	if wanted != nil {
		e := *wanted - g.opts.First
		return e, g.gone[e]
	}
	best := -1
	for e, load := range g.load {
		if g.gone[e] == nil && (best < 0 || load < g.load[best]) {
			best = e
		}
	}
	if best < 0 {
		return 0, errors.Join(g.gone...)
	}
	return best, nil
}

func (g *incarnation) onProgress(ctx actor.Context, m *actors.Progress) {
	r, ok := g.byID[m.ID]
	if !ok {
		return // of a request that a former incarnation gave up
	}
	g.load[r.engine] -= len(m.Chunk.Tokens)
	r.log = append(r.log, m.Chunk.Tokens...)
	g.forward(ctx, r, m.Chunk)
}

// forward passes a chunk on to the client and forgets the request with its last one.
func (g *incarnation) forward(ctx actor.Context, r *request, c actors.Chunk) {
	if !r.started {
		c.Prompt, r.started = r.prompt, true
	}
	c.Engine = g.opts.First + r.engine
	if c.Finish != "" {
		delete(g.byID, r.id)
		delete(g.byStream, r.stream)
		g.load[r.engine] -= r.outstanding()
	}
	r.stream.push(c)
	g.allAborted(ctx)
}

func (g *incarnation) onCancel(ctx actor.Context, m *Cancel) {
	if r, ok := g.byStream[m.Stream]; ok {
		ctx.Send(g.opts.Engines[r.engine], &actors.Abort{ID: r.id})
	}
}

func (g *incarnation) onEngineGone(ctx actor.Context, m *actors.EngineGone) {
	gone := m.Engine - g.opts.First
	g.gone[gone] = m.Err
	for _, r := range g.byID {
		if r.engine == gone {
			g.forward(ctx, r, actors.Chunk{Finish: actors.FinishError, Err: m.Err})
		}
	}
}

func (g *incarnation) onAbortAll(ctx actor.Context) {
	g.closed = true
	if ctx.Sender() != nil {
		g.aborting = append(g.aborting, ctx.Sender())
	}
	for _, r := range g.byID {
		ctx.Send(g.opts.Engines[r.engine], &actors.Abort{ID: r.id})
	}
	g.allAborted(ctx)
}

// allAborted answers those who wait for the end of the last request.
func (g *incarnation) allAborted(ctx actor.Context) {
	if !g.closed || len(g.byID) > 0 {
		return
	}
	for _, pid := range g.aborting {
		ctx.Send(pid, &actors.AllAborted{})
	}
	g.aborting = nil
}

// onEnd ends all streams when the incarnation ends, the one among them at whose message it panicked, and tells the engines.
func (g *incarnation) onEnd(ctx actor.Context, err error) {
	for id, r := range g.byID {
		delete(g.byID, id)
		ctx.Send(g.opts.Engines[r.engine], &actors.Abort{ID: r.id})
		g.forward(ctx, r, actors.Chunk{Finish: actors.FinishError, Err: err})
	}
	if m := g.current; m != nil && m.Stream != nil {
		m.Stream.push(actors.Chunk{Prompt: m.Prompt, Finish: actors.FinishError, Err: err}) // does nothing after a last chunk
	}
	for _, pid := range g.aborting {
		ctx.Send(pid, &actors.AllAborted{})
	}
}
