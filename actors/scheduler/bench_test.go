package scheduler

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/kv"
)

// running are the requests of the benchmarks, which all generate in every step.
const running = 64

// long are settings under which that many requests run for b.N steps and more.
func long(b *testing.B) (set Settings, r *actors.Request) {
	length := b.N + 64
	set = Settings{
		Engine: engineNo, Epoch: 1, GroupRanks: 1, ModelLen: length, MaxNumBatchedTokens: 8 * running, MaxNumSeqs: running, BlockSize: 64,
		KVBlocks: running * kv.BlocksFor(length, 64), EOS: []int32{0},
	}
	return set, &actors.Request{MaxTokens: length}
}

// BenchmarkCore is what the decisions of a step cost an engine.
func BenchmarkCore(b *testing.B) {
	for _, waiting := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			set, r := long(b)
			set.Engine = 0
			c := alone(set)
			for i := range running + waiting {
				c.submit(actors.RequestID(i+1), []int32{1, 2}, r)
			}
			turn(b, c)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N { // which says how long the requests are
				if n := len(turn(b, c)); n != running {
					b.Fatalf("%d of %d requests got a token", n, running)
				}
			}
		})
	}
}

// BenchmarkStep is what a step costs from the answer of a rank that computes nothing to the next one, the text of the tokens and the
// messages to and from agent, rank and gateway included.
func BenchmarkStep(b *testing.B) {
	set, r := long(b)
	log := slog.New(slog.DiscardHandler)
	sys := actors.NewSystem(log)
	root := sys.Root
	defer sys.Shutdown()
	over := make(chan struct{})
	rank := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if s, ok := ctx.Message().(*actors.Step); ok {
			d := &actors.StepDone{Rank: 8, Epoch: 1, Step: s.Plan.Step, Incarnation: s.Incarnation, Sampled: make([]actors.Sampled, 0, running)}
			for _, rows := range s.Batch.Rows {
				if rows.Sample {
					d.Sampled = append(d.Sampled, actors.Sampled{Request: rows.Request, Token: 7})
				}
			}
			ctx.Respond(d)
			if s.Plan.Step == uint64(b.N) {
				close(over)
			}
		}
	}))
	var pid *actor.PID // set before the first vote
	agent := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if v, ok := ctx.Message().(*actors.Vote); ok && v.Step <= uint64(b.N) {
			ctx.Send(pid, &actors.Planned{Plan: planFor(v)})
		}
	}))
	client := root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	pid = root.Spawn(Props(Options{
		Settings: set, Node: "n", FirstRank: 8, Ranks: []*actor.PID{rank}, Agent: agent, Ledger: NewLedger(engineNo, set.KVBlocks), Logger: log, NewText: letters,
	}))
	for i := range running {
		root.RequestWithCustomSender(pid, &actors.Submit{ID: actors.RequestID(i + 1), Prompt: []int32{1, 2}, Request: r}, client)
	}
	b.ReportAllocs()
	b.ResetTimer()
	root.Send(pid, &actors.Called{Epoch: 1, Wave: 1, Step: 1})
	<-over
	b.StopTimer()
	for _, p := range []*actor.PID{pid, agent, rank, client} {
		if err := root.StopFuture(p).Wait(); err != nil {
			b.Error(err)
		}
	}
}
