package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/agent"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/messages/subject"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rack is two nodes, a with engines 0 and 1 and the coordinator, b with engine 2, on one bus each, in a synctest bubble.
type rack struct {
	t       *testing.T
	system  *actors.System
	net     *membus.Network
	buses   []*membus.Bus
	engines []*fakeEngine
	counts  actors.BusCounts
	up      chan *actors.GroupUp
	ended   chan *actors.GroupEnded
	aborts  chan *actors.AbortEpoch
	nodes   []*actor.PID
}

// work gives an engine requests of one token.
type work struct{ requests int }

// fakeEngine is a scheduler with a rank that runs a step at once.
type fakeEngine struct {
	id       int
	pid      *actor.PID
	agent    func() *actor.PID
	progress nn.Progress
	hang     bool
	breaks   error

	last   *actors.Plan
	called uint64
	voted  uint64
	batch  int
	queue  int
	steps  int
	done   chan int      // its number, when it has no request
	idle   chan struct{} // one entry for each park
}

func (e *fakeEngine) Receive(ctx actor.Context) {
	send := func(m any) { ctx.Send(e.agent(), m) }
	switch m := ctx.Message().(type) {
	case *work:
		e.queue += m.requests
		if e.last != nil && e.last.Action == actors.Park && e.called != e.last.Step+1 {
			send(&actors.Wake{Engine: e.id, Epoch: 1})
		}
	case *actors.Called:
		if e.last == nil {
			e.last = &actors.Plan{Step: m.Step - 1}
		}
		if e.called = m.Step; e.voted != m.Step {
			e.vote(send, m.Step)
		}
	case *actors.Planned:
		e.planned(send, m.Plan)
	}
}

func (e *fakeEngine) planned(send func(any), p *actors.Plan) {
	e.last = p
	if p.Action == actors.Park {
		e.idle <- struct{}{}
		return
	}
	e.progress.Begin(p.Step, &[]nn.Op{{Name: nn.OpAttention, Layer: 3}})
	e.progress.Enter(0)
	if e.hang {
		return
	}
	if e.breaks != nil {
		send(&actors.Broken{Epoch: 1, Failure: &actors.Failure{Rank: e.id, Node: "b", Step: p.Step, Op: "attention", Layer: 3, Err: e.breaks}})
		return
	}
	e.progress.End()
	e.steps++
	if e.queue -= e.batch; e.batch > 0 && e.queue == 0 {
		e.done <- e.id
	}
	e.vote(send, p.Step+1)
}

func (e *fakeEngine) vote(send func(any), step uint64) {
	e.voted, e.batch = step, min(e.queue, 1)
	send(&actors.Vote{Epoch: 1, Step: step, Engine: e.id, Rows: e.batch, Queue: e.queue - e.batch})
}

func newRack(t *testing.T, o membus.Options) *rack {
	r := &rack{
		t: t, system: actors.NewSystem(slog.New(slog.DiscardHandler)), net: membus.New(o), up: make(chan *actors.GroupUp, 100),
		ended: make(chan *actors.GroupEnded, 100), aborts: make(chan *actors.AbortEpoch, 100),
	}
	space := subject.Space{Cluster: "test"}
	const stall = 10 * time.Second
	for id := range 3 {
		r.engines = append(r.engines, &fakeEngine{id: id, done: make(chan int, 10000), idle: make(chan struct{}, 10000)})
	}
	b := r.connect()
	r.nodes = append(r.nodes, r.parent(func(ctx actor.Context) {
		ctx.Spawn(Props(Options{
			Node: "a", Space: space, Bus: b, Layout: topology.Layout{DataParallel: 3, TensorParallel: 1, ExpertParallel: true}, Exchange: topology.AllGather,
			StallTimeout: stall, Counts: &r.counts, Logger: slog.New(slog.DiscardHandler),
		}))
	}))
	synctest.Wait()
	for _, n := range []struct {
		name    string
		engines []*fakeEngine
	}{{"a", r.engines[:2]}, {"b", r.engines[2:]}} {
		b := r.connect()
		r.register(b, space, n.name, uint32(n.engines[0].id), uint32(len(n.engines)))
		o := agent.Options{
			Node: n.name, Group: "ep", Space: space, Bus: b, StallTimeout: stall, Counts: &r.counts, Logger: slog.New(slog.DiscardHandler),
			ExpertGroup: r.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*actors.AbortEpoch); ok {
					r.aborts <- m
				}
			})),
		}
		r.nodes = append(r.nodes, r.parent(func(ctx actor.Context) { r.startAgent(ctx, o, n.engines) }))
	}
	// Both are there: this registration is answered with the devices of all ranks.
	if a := r.register(r.buses[1], space, "a", 0, 2); len(a.Assignments) != 3 {
		t.Fatalf("node a: %v, want three devices", a)
	}
	synctest.Wait() // agents listen before the first Call
	r.ready(space, "a", 0, 1)
	r.ready(space, "b", 2)
	return r
}

func (r *rack) startAgent(ctx actor.Context, o agent.Options, engines []*fakeEngine) {
	var pid *actor.PID
	for _, e := range engines {
		e.agent = func() *actor.PID { return pid }
		e.pid = ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return e }))
		o.Engines = append(o.Engines, agent.Engine{Engine: e.id, Scheduler: e.pid})
		o.Ranks = append(o.Ranks, agent.Rank{Rank: e.id, Progress: &e.progress})
	}
	pid = ctx.Spawn(agent.Props(o))
}

func (r *rack) connect() *membus.Bus {
	b := r.net.Connect()
	r.buses = append(r.buses, b)
	return b
}

func (r *rack) parent(start func(actor.Context)) *actor.PID {
	return r.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			start(ctx)
		case *actors.GroupUp:
			r.up <- m
		case *actors.GroupEnded:
			r.ended <- m
		}
	}))
}

// register asks the coordinator for devices until it answers.
func (r *rack) register(b *membus.Bus, space subject.Space, node string, first, engines uint32) *v1.Registered {
	r.t.Helper()
	request, err := proto.Marshal(&v1.Register{Protocol: Protocol, Node: node, Host: node, Devices: 2, FirstEngine: first, Engines: engines, Fingerprint: []byte("same")})
	if err != nil {
		r.t.Fatal(err)
	}
	for range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		data, err := b.Request(ctx, space.Register(), request)
		cancel()
		var a v1.Registered
		if err == nil {
			err = proto.Unmarshal(data, &a)
		}
		if err == nil {
			return &a
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			r.t.Fatal(err)
		}
	}
	r.t.Fatal("no registration was answered")
	return nil
}

// ready says that ranks of a node have joined, more often than the bus can lose it.
func (r *rack) ready(space subject.Space, node string, ranks ...uint32) {
	data, err := proto.Marshal(&v1.Ready{Group: "ep", Epoch: 1, Node: node, Ranks: ranks})
	for range 30 {
		if err == nil {
			err = r.buses[0].Publish(space.Coordinator(subject.Ready), data)
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// awaitUp waits until all nodes have accepted their first plan.
func (r *rack) awaitUp() {
	for range 2 {
		if m := <-r.up; m.Group != "ep" || m.Epoch != 1 {
			r.t.Errorf("up: %+v", m)
		}
	}
}

// parked waits until the next park has reached all engines.
func (r *rack) parked() {
	for _, e := range r.engines {
		<-e.idle
	}
}

func (r *rack) give(engine, requests int) {
	r.system.Root.Send(r.engines[engine].pid, &work{requests})
}

func (r *rack) close() {
	for _, n := range r.nodes {
		if err := r.system.Root.PoisonFuture(n).Wait(); err != nil {
			r.t.Error(err)
		}
	}
	r.system.Shutdown()
	for _, b := range r.buses {
		if err := b.Close(context.Background()); err != nil {
			r.t.Error(err)
		}
	}
	<-time.After(time.Second) // on the bubble's clock: what the actor library still does ends
}

// TestParkAndWake: engines on two nodes are given work at random moments and park in between, over a bus that is reliable and over
// one that loses, doubles and reorders.
func TestParkAndWake(t *testing.T) {
	const seed = 5
	for name, tt := range map[string]struct {
		bus    membus.Options
		rounds int
	}{
		"reliable": {membus.Options{}, 1000},
		"faulty":   {membus.Options{Seed: seed, Loss: 0.2, Duplicate: 0.2, Delay: 30 * time.Millisecond}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Logf("seed %d", seed)
			synctest.Test(t, func(t *testing.T) {
				r := newRack(t, tt.bus)
				defer r.close()
				r.awaitUp()
				r.parked()
				chance := rand.New(rand.NewPCG(seed, 2))
				for range tt.rounds {
					<-time.After(time.Duration(chance.IntN(1000)) * time.Millisecond)
					id, n := chance.IntN(3), 1+chance.IntN(3)
					r.give(id, n)
					if got := <-r.engines[id].done; got != id {
						t.Fatalf("engine %d is done, %d had work", got, id)
					}
					r.parked()
				}
				r.check(tt.rounds, tt.bus == membus.Options{})
			})
		})
	}
}

func (r *rack) check(rounds int, reliable bool) {
	synctest.Wait()
	steps := r.engines[0].steps
	if r.engines[1].steps != steps || r.engines[2].steps != steps || steps < rounds {
		r.t.Errorf("engines ran %d, %d, %d steps in %d rounds; want equal numbers", steps, r.engines[1].steps, r.engines[2].steps, rounds)
	}
	if votes, plans := r.counts.Votes.Load(), r.counts.Plans.Load(); votes < int64(2*steps) || plans < int64(2*steps) || votes != plans {
		r.t.Errorf("%d votes and %d plans of two nodes in %d steps", votes, plans, steps)
	}
	if resent := r.counts.Resent.Load(); reliable != (resent == 0) {
		r.t.Errorf("%d messages sent again, reliable bus: %v", resent, reliable)
	}
	if len(r.ended) > 0 {
		r.t.Errorf("group ended: %v", (<-r.ended).Err)
	}
}

// TestParkedIsSilent: nothing is sent while the group is parked.
func TestParkedIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack(t, membus.Options{})
		defer r.close()
		r.awaitUp()
		r.parked()
		r.give(2, 5)
		<-r.engines[2].done
		r.parked()
		<-time.After(2 * time.Second) // the last reports on the step before the park
		before := r.published()
		<-time.After(time.Hour)
		if sent := r.published() - before; sent != 0 {
			t.Errorf("%d messages in an hour", sent)
		}
	})
}

func (r *rack) published() uint64 {
	var n uint64
	for _, b := range r.buses {
		n += b.Counts().Published
	}
	return n
}

// TestVerdict: every node hears of a rank that hangs or fails, by name, and aborts.
func TestVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*fakeEngine)
		want  string
		after time.Duration
	}{
		"hangs": {func(e *fakeEngine) { e.hang = true }, "rank 2 on node b: step 2: layer 3: attention: no progress for 10", 10 * time.Second},
		"fails": {func(e *fakeEngine) { e.breaks = errors.New("ECC error") }, "rank 2 on node b: step 2: layer 3: attention: ECC error", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRack(t, membus.Options{})
				defer r.close()
				tt.spoil(r.engines[2])
				r.awaitUp()
				r.parked()
				start := time.Now()
				r.give(0, 3)
				for range 2 {
					if m := <-r.ended; m.Epoch != 1 || m.Group != "ep" || !strings.HasPrefix(m.Err.Error(), tt.want) {
						t.Errorf("group ended: %+v, want %q", m, tt.want)
					}
					if m := <-r.aborts; m.Epoch != 1 || !strings.HasPrefix(m.Err.Error(), tt.want) {
						t.Errorf("abort: %+v, want %q", m, tt.want)
					}
				}
				if took := time.Since(start); took < tt.after || took > tt.after+time.Second {
					t.Errorf("the verdict came after %s, want %s to a second more", took, tt.after)
				}
				<-time.After(time.Second)
				before := r.published()
				<-time.After(time.Minute)
				if sent := r.published() - before; sent != 0 {
					t.Errorf("%d messages after the verdict was heeded", sent)
				}
			})
		})
	}
}

// TestBusIsClosed: a coordinator and an agent that cannot subscribe say so.
func TestBusIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack(t, membus.Options{})
		defer r.close()
		b := r.net.Connect()
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		logger := slog.New(slog.DiscardHandler)
		r.nodes = append(r.nodes, r.parent(func(ctx actor.Context) {
			ctx.Spawn(Props(Options{Bus: b, Counts: &r.counts, Logger: logger}))
		}))
		if m := <-r.ended; m.Group != "" || !strings.HasPrefix(m.Err.Error(), "coordinator: ") {
			t.Errorf("coordinator: %+v", m)
		}
		r.nodes = append(r.nodes, r.parent(func(ctx actor.Context) {
			ctx.Spawn(agent.Props(agent.Options{Node: "c", Group: "dp7", Bus: b, Counts: &r.counts, Logger: logger}))
		}))
		if m := <-r.ended; m.Group != "dp7" || !strings.HasPrefix(m.Err.Error(), "agent of group dp7: ") {
			t.Errorf("agent: %+v", m)
		}
	})
}

// TestJunkOnTheBus: what is not understood is dropped, and the group goes on.
func TestJunkOnTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack(t, membus.Options{})
		defer r.close()
		r.awaitUp()
		r.parked()
		space := subject.Space{Cluster: "test"}
		unknown, err := proto.Marshal(&v1.Plan{Group: "ep", Term: 1, Epoch: 1, Step: 2, Action: 77})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{
			space.Register(), space.Coordinator(subject.Votes), space.Coordinator(subject.Wake), space.Coordinator(subject.Done),
			space.Coordinator(subject.Progress), space.Coordinator(subject.Ready), space.Plans("ep"), space.Calls("ep"), space.Node("ep", "a"),
		} {
			for _, data := range [][]byte{[]byte("\xff\xff junk"), nil, unknown} {
				if err := r.buses[0].Publish(s, data); err != nil {
					t.Fatal(err)
				}
			}
		}
		answer, err := r.buses[0].Request(t.Context(), space.Register(), nil) // a registration of nobody
		var refused v1.Registered
		if err != nil || v1.Decode(answer, &refused) != nil || !strings.Contains(refused.Refusal, "both need a name") {
			t.Errorf("a registration that says nothing: %v, %+v", err, &refused)
		}
		r.give(1, 2)
		<-r.engines[1].done
		r.parked()
		r.check(1, true)
	})
}
