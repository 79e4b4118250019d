package scheduler

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/sample"
)

// Options describe a scheduler.
type Options struct {
	Settings
	Node      string       // name of the node, for messages
	FirstRank int          // global number of the engine's first rank
	Ranks     []*actor.PID // the engine's ranks, in order
	Agent     *actor.PID   // of the engine's group on this node; receives Vote, Wake, Broken
	Ledger    *Ledger
	Logger    *slog.Logger
	// NewText returns a function that takes the tokens of one answer in order and returns the text each completes. It is
	// nil without a tokenizer: then answers have no text and requests no stop strings.
	NewText func() func(id int32) string
}

// life is what outlives a restart of the actor.
type life struct {
	opts        Options
	incarnation uint64
	stand       *standing
	drainers    []*actor.PID // to be told when the engine has drained
}

// Props make the scheduler's actor. An incarnation that fails ends its requests with an error; the next one starts empty where the
// engine stands: steps of the former that are planned later run without rows. They are used for one spawn.
func Props(o Options) *actor.Props {
	l := &life{opts: o, stand: &standing{engine: o.Engine, ranks: len(o.Ranks), meets: o.GroupRanks > 1, epoch: o.Epoch}}
	return actor.PropsFromProducer(func() actor.Actor {
		l.incarnation++
		return &incarnation{life: l, inc: l.incarnation, core: newCore(o.Settings, l.stand), answers: map[actors.RequestID]*answer{}}
	})
}

// incarnation is the scheduler's actor between two restarts.
type incarnation struct {
	*life
	inc     uint64
	core    *core
	answers map[actors.RequestID]*answer
	current *actors.Submit
	client  *actor.PID // of current
}

// Receive implements actor.Actor. It never waits.
func (s *incarnation) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.goOn(ctx)
	case *actors.Submit:
		s.current, s.client = m, ctx.Sender()
		s.onSubmit(ctx, m)
		s.current, s.client = nil, nil
	case *actors.Abort:
		s.onAbort(ctx, m)
	case *actors.Called:
		s.onCalled(ctx, m)
	case *actors.Planned:
		s.onPlanned(ctx, m)
	case *actors.StepDone:
		s.onStepDone(ctx, m)
	case *actors.Refused:
		s.onUnrun(ctx, m.Rank, m.Step, m.Incarnation, errors.New("refused: "+m.Reason))
	case *actors.Busy:
		s.onUnrun(ctx, m.Rank, m.Step, m.Incarnation, errors.New("the rank has two steps already"))
	case *actors.Drain:
		s.onDrain(ctx)
	case *actors.EpochEnded:
		s.onEpochEnded(ctx, m)
	case *actor.Restarting:
		s.onEnd(ctx, errors.New("the scheduler failed and restarts"))
	case *actor.Stopping:
		s.onEnd(ctx, errors.New("the scheduler has stopped"))
	case *actor.Stopped:
	default:
		s.opts.Logger.Error("unexpected message", "engine", s.opts.Engine, "message", fmt.Sprintf("%T", m))
	}
}

func (s *incarnation) onSubmit(ctx actor.Context, m *actors.Submit) {
	a := &answer{client: ctx.Sender(), stops: sample.NewStopMatcher(m.Request.Stop)}
	s.answers[m.ID] = a
	if err := s.refusal(); err != nil {
		s.tell(ctx, m.ID, actors.Chunk{Finish: actors.FinishError, Err: err})
		return
	}
	if s.opts.NewText != nil {
		a.text = s.opts.NewText()
	}
	if !s.core.submit(m.ID, m.Prompt, m.Request) {
		s.tell(ctx, m.ID, actors.Chunk{Finish: actors.FinishLength})
		return
	}
	s.goOn(ctx)
}

// refusal returns why the engine takes no request, nil if it does.
func (s *incarnation) refusal() error {
	switch {
	case s.stand.over != nil:
		return s.stand.over
	case s.stand.drain:
		return fmt.Errorf("engine %d is draining: it takes no new requests", s.opts.Engine)
	default:
		return nil
	}
}

func (s *incarnation) onAbort(ctx actor.Context, m *actors.Abort) {
	if a, ok := s.answers[m.ID]; ok {
		s.tell(ctx, m.ID, actors.Chunk{Text: a.stops.Flush(), Finish: actors.FinishAbort})
		s.goOn(ctx)
	}
}

func (s *incarnation) onCalled(ctx actor.Context, m *actors.Called) {
	if s.stand.call(m) {
		s.goOn(ctx)
	}
}

func (s *incarnation) onPlanned(ctx actor.Context, m *actors.Planned) {
	if s.core.planned(m.Plan, s.inc) {
		s.goOn(ctx)
	}
}

// onDrain keeps who asks; goOn answers.
func (s *incarnation) onDrain(ctx actor.Context) {
	s.stand.drain = true
	if who := ctx.Sender(); who != nil {
		s.drainers = append(s.drainers, who)
	}
	s.goOn(ctx)
}

func (s *incarnation) onEpochEnded(ctx actor.Context, m *actors.EpochEnded) {
	if m.Epoch != s.opts.Epoch {
		return
	}
	err := m.Err
	if err == nil {
		err = fmt.Errorf("engine %d: epoch %d of its group has ended", s.opts.Engine, m.Epoch)
	}
	s.endAll(ctx, err)
}

// endAll ends the engine's requests, those that come later too.
func (s *incarnation) endAll(ctx actor.Context, err error) {
	s.stand.end(err)
	for id, a := range s.answers {
		s.tell(ctx, id, actors.Chunk{Text: a.stops.Flush(), Finish: actors.FinishError, Err: err})
	}
	s.goOn(ctx)
}

// onEnd answers all requests when the incarnation ends, the one among them at whose message it panicked. The core is left
// alone: it may be what failed, and goes with the incarnation, its pool included.
func (s *incarnation) onEnd(ctx actor.Context, err error) {
	err = fmt.Errorf("engine %d: %w", s.opts.Engine, err)
	if m := s.current; m != nil && s.answers[m.ID] == nil {
		s.answers[m.ID] = &answer{client: s.client, stops: sample.NewStopMatcher(nil)}
	}
	s.stand.abandon()
	s.opts.Ledger.kvFree(s.opts.KVBlocks)
	for id, a := range s.answers {
		delete(s.answers, id)
		if a.client != nil {
			ctx.Send(a.client, &actors.Progress{ID: id, Chunk: actors.Chunk{
				Text: a.stops.Flush(), Finish: actors.FinishError, Err: err, Engine: s.opts.Engine,
			}})
		}
	}
}

// tell sends a chunk; if it is the request's last, the request is forgotten and its blocks are free before anyone can know.
func (s *incarnation) tell(ctx actor.Context, id actors.RequestID, c actors.Chunk) {
	a := s.answers[id]
	c.Engine = s.opts.Engine
	if c.Finish != "" {
		s.core.end(id)
		delete(s.answers, id)
		s.opts.Ledger.kvFree(s.core.pool.FreeBlocks())
	}
	if a.client != nil {
		ctx.Send(a.client, &actors.Progress{ID: id, Chunk: c})
	}
}

// goOn does what is due: hands planned steps over, votes, wakes, tells who waits for the drain.
func (s *incarnation) goOn(ctx actor.Context) {
	s.handOver(ctx)
	if v := s.core.vote(); v != nil {
		ctx.Send(s.opts.Agent, v)
	}
	if s.stand.wake(s.core.work()) {
		ctx.Send(s.opts.Agent, &actors.Wake{Engine: s.opts.Engine, Epoch: s.opts.Epoch})
	}
	s.opts.Ledger.kvFree(s.core.pool.FreeBlocks())
	if s.core.drained() {
		for _, who := range s.drainers {
			ctx.Send(who, &actors.Drained{Engine: s.opts.Engine})
		}
		s.drainers = nil
	}
}
