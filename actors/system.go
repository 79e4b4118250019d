package actors

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// System is an actor system whose library writes to the node's logger alone, and which counts what could not be delivered.
type System struct {
	*actor.ActorSystem
	deadLetters atomic.Int64
}

// NewSystem starts an actor system. Of what the library has to say, warnings and errors reach logger.
func NewSystem(logger *slog.Logger) *System {
	s := &System{ActorSystem: actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(warnings{logger.Handler()}).With("lib", "protoactor")
		}),
		actor.WithDeadLetterThrottleInterval(10*time.Millisecond), // its timer is the only thing that outlives Shutdown
	)}
	s.EventStream.Subscribe(func(event any) {
		if _, ok := event.(*actor.DeadLetterEvent); ok {
			s.deadLetters.Add(1)
		}
	})
	return s
}

// DeadLetters returns how many messages found no receiver. Any goroutine may call it.
func (s *System) DeadLetters() int64 { return s.deadLetters.Load() }

// warnings passes warnings and errors on. The library reports its start and every dead letter as information, the letter's
// content included.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}
func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }
