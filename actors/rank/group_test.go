package rank

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

// engine is the ranks of one engine under a parent that passes on what it is told.
type engine struct {
	t      *testing.T
	sys    *actors.System
	ranks  []*Rank
	pids   []*actor.PID
	models []*actortest.Model
	told   chan any
	closed chan int
	// sendAll sends each rank its message.
	sendAll func(message func(i int) any)
}

// order makes the parent send a message, so that the answer comes to it.
type order struct {
	to      *actor.PID
	message any
}

// table is where the ranks of a group find each other.
type table struct {
	seats []chan []byte
}

func newTable(size int) *table {
	t := &table{seats: make([]chan []byte, size)}
	for i := range t.seats {
		t.seats[i] = make(chan []byte, size)
	}
	return t
}

// seat is one member's view of a table.
type seat struct {
	*table
	rank int
}

func (s seat) Publish(_ context.Context, endpoint []byte) error {
	for range s.seats {
		s.seats[s.rank] <- endpoint
	}
	return nil
}

func (s seat) Collect(ctx context.Context) ([][]byte, error) {
	ends := make([][]byte, len(s.seats))
	for i, c := range s.seats {
		select {
		case ends[i] = <-c:
		case <-ctx.Done():
			return nil, fmt.Errorf("member %d is absent: %w", i, ctx.Err())
		}
	}
	return ends, nil
}

// join lets all ranks of the engine join an epoch together.
func (g *engine) join(epoch uint64) [][]hal.Comm {
	g.t.Helper()
	at := newTable(len(g.pids))
	g.sendAll(func(i int) any {
		return &actors.Join{Epoch: epoch, TP: &actors.Meeting{Group: hal.Group{Name: "tp", Epoch: epoch, Rank: i, Size: len(g.pids)}, Rendezvous: seat{at, i}}}
	})
	comms := make([][]hal.Comm, len(g.pids))
	for range g.pids {
		j := (<-g.told).(*actors.Joined)
		if j.Err != nil || j.Epoch != epoch || len(j.Comms) != 1 {
			g.t.Fatalf("joined: %+v", j)
		}
		comms[j.Rank-4] = j.Comms
	}
	return comms
}

// steps returns what the ranks answer to as many steps, by number and rank.
func (g *engine) steps(n int) map[uint64][]*actors.StepDone {
	g.t.Helper()
	all := map[uint64][]*actors.StepDone{}
	for range n * len(g.pids) {
		d, ok := (<-g.told).(*actors.StepDone)
		if !ok {
			g.t.Fatal("told something else than a step's end")
		}
		if all[d.Step] == nil {
			all[d.Step] = make([]*actors.StepDone, len(g.pids))
		}
		all[d.Step][d.Rank-4] = d
	}
	return all
}

func startEngine(t *testing.T, size int) *engine {
	g := &engine{t: t, sys: actors.NewSystem(options().Logger), told: make(chan any, 64), closed: make(chan int, size)}
	rack := &actortest.Rack{}
	for i := range size {
		m := actortest.NewModel(vocab, limits)
		o := options()
		o.Rank, o.TPRank = 4+i, i
		o.Open = func(context.Context) (Opened, error) {
			return Opened{Model: m, Join: rack.Join, Close: func() error { g.closed <- i; return nil }, Facts: actors.RankFacts{Progress: &m.Progress}}, nil
		}
		g.ranks, g.models = append(g.ranks, New(o)), append(g.models, m)
	}
	spawned := make(chan *actor.PID, size)
	parent := g.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			for _, r := range g.ranks {
				spawned <- ctx.Spawn(r.Props())
			}
		case *order:
			ctx.Request(m.to, m.message)
		case *actors.RankReady, *actors.RankFailed, *actors.Joined, *actors.StepDone, *actors.Refused, *actors.Busy:
			g.told <- m
		}
	}))
	for range size {
		g.pids = append(g.pids, <-spawned)
	}
	t.Cleanup(func() {
		g.sys.Root.Stop(parent)
		for _, r := range g.ranks {
			<-r.Done()
		}
		g.sys.Shutdown()
	})
	for range size {
		if r, ok := (<-g.told).(*actors.RankReady); !ok {
			t.Fatalf("not ready: %+v", r)
		}
	}
	g.sendAll = func(message func(i int) any) {
		for i, pid := range g.pids {
			g.sys.Root.Send(parent, &order{pid, message(i)})
		}
	}
	return g
}

// TestRanksOfAnEngine: all get the same pairs, two at a time; the first samples and tells the others, so that all fill the same
// tokens in, and the row of a request that has ended is padding on all.
func TestRanksOfAnEngine(t *testing.T) {
	g := startEngine(t, 3)
	g.join(1)
	prompt := []int32{1, 2, 3}
	want := actortest.Answer(prompt, 3, vocab)
	decode := func(number uint64, position int) *actors.Step {
		s := step(number, []int32{actors.Placeholder})
		s.Plan.PadTo = 3
		s.Batch.Rows[0].Position, s.Batch.Rows[0].Ends = position, []int32{want[1]}
		return s
	}
	first, second, third := step(1, prompt), decode(2, 3), decode(3, 4)
	g.sendAll(func(int) any { return first })
	g.sendAll(func(int) any { return second })
	all := g.steps(2)
	g.sendAll(func(int) any { return third })
	for number, done := range g.steps(1) {
		all[number] = done
	}
	for i, s := range []actors.Sampled{{Request: 1, Token: want[0]}, {Request: 1, Token: want[1]}, {Request: 1, Masked: true}} {
		for tp, d := range all[uint64(i+1)] {
			switch {
			case d.Err != nil || d.Sent.TP != 3*actortest.Layers*actortest.RowBytes:
				t.Errorf("step %d, rank %d: %+v", i+1, tp, d)
			case tp == 0 && (len(d.Sampled) != 1 || d.Sampled[0] != s):
				t.Errorf("step %d: sampled %+v, want %+v", i+1, d.Sampled, s)
			case tp > 0 && d.Sampled != nil:
				t.Errorf("step %d: rank %d sampled too: %+v", i+1, tp, d.Sampled)
			}
		}
	}
}

// TestStepsAreInOrder: within a wave a rank that meets others skips none.
func TestStepsAreInOrder(t *testing.T) {
	g := startEngine(t, 2)
	g.join(1)
	send := func(number, wave uint64) {
		s := step(number, []int32{1})
		s.Plan.Wave = wave
		g.sendAll(func(int) any { return s })
	}
	send(1, 1)
	g.steps(1)
	send(3, 1)
	for range g.pids {
		if r := (<-g.told).(*actors.Refused); !strings.Contains(r.Reason, "has taken step 1 of wave 1: step 2 is missing") {
			t.Errorf("refused: %v", r)
		}
	}
	send(3, 2) // step 2 was a park
	for _, d := range g.steps(1)[3] {
		if d.Err != nil {
			t.Errorf("after a park: %v", d.Err)
		}
	}
}

// TestAbortAndNextEpoch: a rank that never comes is left behind by Abort; the failure says where, the step behind it is not begun,
// and the next epoch runs.
func TestAbortAndNextEpoch(t *testing.T) {
	g := startEngine(t, 2)
	comms := g.join(1)
	broken := errors.New("no such number")
	g.models[1].Before = func(context.Context, int, *nn.Batch) error { return broken }
	for _, s := range []*actors.Step{step(1, []int32{1}), step(2, []int32{1})} {
		g.sendAll(func(int) any { return s })
	}
	var failed *actors.Failure
	if d := (<-g.told).(*actors.StepDone); !errors.As(d.Err, &failed) || failed.Rank != 5 || failed.Step != 1 || failed.Layer != 0 || failed.Op != "attention" || !errors.Is(failed, broken) {
		t.Fatalf("failed: %+v", d.Err)
	}
	if d := (<-g.told).(*actors.StepDone); d.Rank != 5 || d.Step != 2 || hal.ClassOf(d.Err) != hal.Aborted {
		t.Fatalf("the step behind it: %+v", d)
	}
	comms[0][0].Abort(failed)
	for range 2 {
		if d := (<-g.told).(*actors.StepDone); d.Rank != 4 || d.Lost || hal.ClassOf(d.Err) != hal.Aborted || !strings.Contains(d.Err.Error(), "rank 5 on node n: step 1: layer 0: attention: no such number") {
			t.Errorf("the other: %v", d.Err)
		}
	}
	g.models[1].Before = nil
	g.join(2)
	s := step(1, []int32{1})
	s.Plan.Epoch = 2
	g.sendAll(func(int) any { return s })
	for _, d := range g.steps(1)[1] {
		if d.Err != nil {
			t.Errorf("next epoch: %v", d.Err)
		}
	}
}

// TestStopWhileJoining: a rank that stops does not wait for members that do not come.
func TestStopWhileJoining(t *testing.T) {
	g := startEngine(t, 1)
	at := newTable(2)
	g.sendAll(func(int) any {
		return &actors.Join{Epoch: 1, EP: &actors.Meeting{Group: hal.Group{Name: "ep", Size: 2}, Rendezvous: seat{at, 0}}}
	})
	<-at.seats[0] // it has published, and waits
	if err := g.sys.Root.StopFuture(g.pids[0]).Wait(); err != nil {
		t.Fatal(err)
	}
	<-g.ranks[0].Done()
	if closed := <-g.closed; closed != 0 || g.models[0].Closed() != 1 {
		t.Errorf("device %d closed, model %d times", closed, g.models[0].Closed())
	}
}

// TestJoinFails: the error names epoch, group and cause, its rank the answer; the rank lives and may join again.
func TestJoinFails(t *testing.T) {
	g := startEngine(t, 1)
	g.sendAll(func(int) any {
		return &actors.Join{Epoch: 1, TP: &actors.Meeting{Group: hal.Group{Name: "tp", Epoch: 1, Size: 2}, Rendezvous: seat{newTable(1), 0}}}
	})
	if j := (<-g.told).(*actors.Joined); j.Err == nil || j.Comms != nil || !strings.HasPrefix(j.Err.Error(), "joining epoch 1: group tp: ") {
		t.Errorf("joined: %+v", j)
	}
	g.join(1)
	s := step(1, []int32{1}, []int32{2})
	g.sendAll(func(int) any { return s })
	d := g.steps(1)[1][0]
	tokens := []int32{d.Sampled[0].Token, d.Sampled[1].Token}
	if want := []int32{actortest.Next([]int32{1}, vocab), actortest.Next([]int32{2}, vocab)}; d.Err != nil || !slices.Equal(tokens, want) {
		t.Errorf("tokens %v, error %v; want %v", tokens, d.Err, want)
	}
}

// TestNoStepWhileJoining: from the Join on a rank is in no epoch, so that nothing of the former one runs in the next, nor after a join
// that failed.
func TestNoStepWhileJoining(t *testing.T) {
	g := startEngine(t, 1)
	g.join(1)
	refused := func() {
		t.Helper()
		s := step(1, []int32{1})
		g.sendAll(func(int) any { return s })
		if r, ok := (<-g.told).(*actors.Refused); !ok || r.Reason != "plan of epoch 1; the rank is in none" {
			t.Errorf("a step of epoch 1: %+v", r)
		}
	}
	meet := &actors.Meeting{Group: hal.Group{Name: "ep", Epoch: 2, Size: 2}, Rendezvous: seat{newTable(2), 0}}
	g.sendAll(func(int) any { return &actors.Join{Epoch: 2, EP: meet} })
	refused()
	g.sendAll(func(int) any { return &actors.Join{Epoch: 2, EP: meet} })
	if j, ok := (<-g.told).(*actors.Joined); !ok || j.Err == nil || j.Err.Error() != "joining epoch 2: the rank has joined epoch 2, or is about to" {
		t.Errorf("a copy of the join: %+v", j)
	}
	meet.Rendezvous.(seat).seats[1] <- []byte("an endpoint that is none")
	if j, ok := (<-g.told).(*actors.Joined); !ok || j.Err == nil {
		t.Fatalf("joined: %+v", j)
	}
	refused()
	g.sendAll(func(int) any { return &actors.Join{Epoch: 1} })
	if j, ok := (<-g.told).(*actors.Joined); !ok || j.Err == nil {
		t.Errorf("back into an old epoch: %+v", j)
	}
	g.join(2)
}

// mute is a model that panics when it is given others to meet.
type mute struct{ *actortest.Model }

func (m mute) Join(tp, _ hal.Comm) {
	if tp != nil {
		panic("speechless")
	}
}

// TestPanicWhileJoining: the rank is in no communicator then, as the answer says: whoever met it there hears that it has closed.
func TestPanicWhileJoining(t *testing.T) {
	rack, at := &actortest.Rack{}, newTable(1)
	m := &member{opts: options(), opened: Opened{Model: mute{actortest.NewModel(vocab, limits)}, Join: rack.Join}}
	group := hal.Group{Name: "tp", Epoch: 1, Size: 1}
	j := m.join(t.Context(), &actors.Join{Epoch: 1, TP: &actors.Meeting{Group: group, Rendezvous: seat{at, 0}}})
	if want := "joining epoch 1: panic on the device thread: speechless"; j.Err == nil || j.Err.Error() != want || j.Comms != nil || m.comms != nil {
		t.Errorf("joined: %+v, still in %d communicators; want %s", j, len(m.comms), want)
	}
	again, err := rack.Join(t.Context(), group, seat{at, 0})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.(*actortest.Comm).Meet(t.Context(), "anything", nil); hal.ClassOf(err) != hal.Aborted {
		t.Errorf("meeting it: %v", err)
	}
}
