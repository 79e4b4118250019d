package expertgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/messages/bus"
	"github.com/moerack/moerack/messages/bus/membus"
	"github.com/moerack/moerack/messages/subject"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeComm knows how it was made and how it was aborted.
type fakeComm struct {
	hal.Comm
	group     hal.Group
	endpoints [][]byte
	mu        sync.Mutex // guards causes
	causes    []error
}

func (c *fakeComm) Abort(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.causes = append(c.causes, cause)
}

// fakeRank joins as the device thread of a rank does: in a goroutine, TP first.
type fakeRank struct {
	rank   int
	fail   error           // instead of joining
	ctx    context.Context //nolint:containedctx // the fake's own life, as a device thread's
	joined chan *actors.Joined
}

func (r *fakeRank) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*actors.Join)
	if !ok {
		return
	}
	root, sender := ctx.ActorSystem().Root, ctx.Sender()
	go func() {
		j := &actors.Joined{Rank: r.rank, Epoch: m.Epoch, Err: r.fail}
		for _, at := range []*actors.Meeting{m.TP, m.EP} {
			if at == nil || j.Err != nil {
				continue
			}
			if j.Err = at.Rendezvous.Publish(r.ctx, fmt.Appendf(nil, "rank %d of %s", r.rank, at.Group.Name)); j.Err != nil {
				continue
			}
			ends, err := at.Rendezvous.Collect(r.ctx)
			if j.Err = err; err == nil {
				j.Comms = append(j.Comms, &fakeComm{group: at.Group, endpoints: ends})
			}
		}
		root.Send(sender, j)
		r.joined <- j
	}()
}

// cluster is the engines of a layout, one on each node, and a coordinator that only listens.
type cluster struct {
	t      *testing.T
	layout topology.Layout
	net    *membus.Network
	system *actors.System
	space  subject.Space
	cancel context.CancelCauseFunc
	ranks  []*fakeRank
	groups []*actor.PID // by node; nil: that node is not there
	ends   chan *actors.GroupEnded

	mu    sync.Mutex // guards ready
	ready map[string][]*v1.Ready
	buses []*membus.Bus
}

var space = subject.Space{Cluster: "test"}

func newCluster(t *testing.T, layout topology.Layout, o membus.Options) *cluster {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &cluster{
		t: t, layout: layout, net: membus.New(o), system: actors.NewSystem(slog.New(slog.DiscardHandler)), space: space, cancel: cancel,
		groups: make([]*actor.PID, layout.DataParallel), ends: make(chan *actors.GroupEnded, 1), ready: map[string][]*v1.Ready{},
	}
	for r := range layout.World() {
		c.ranks = append(c.ranks, &fakeRank{rank: r, ctx: ctx, joined: make(chan *actors.Joined, 1)})
	}
	if _, err := c.connect().Subscribe(c.space.Coordinator(subject.Ready), func(m bus.Message) {
		var r v1.Ready
		if err := proto.Unmarshal(m.Data, &r); err != nil {
			t.Errorf("Ready: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ready[r.GetNode()] = append(c.ready[r.GetNode()], &r)
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) connect() *membus.Bus {
	b := c.net.Connect()
	c.buses = append(c.buses, b)
	return b
}

func nodeName(engine int) string { return string(rune('a' + engine)) }

// start brings the node of an engine up, with its ranks.
func (c *cluster) start(engine int) {
	from, to := c.layout.Ranks(engine)
	o := Options{
		Space: c.space, Bus: c.connect(), Layout: c.layout, Epoch: 1, Node: nodeName(engine), Logger: slog.New(slog.DiscardHandler),
	}
	for _, g := range c.layout.Groups() {
		if slices.Contains(g.Engines, engine) {
			o.Group = g
		}
	}
	for e := range c.layout.DataParallel {
		o.Nodes = append(o.Nodes, slices.Repeat([]string{nodeName(e)}, c.layout.TensorParallel)...)
	}
	for r := from; r < to; r++ {
		o.Ranks = append(o.Ranks, Rank{Rank: r, PID: c.spawn(func() actor.Actor { return c.ranks[r] })})
	}
	parent := func() actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				c.groups[engine] = ctx.Spawn(Props(o))
			case *actors.GroupEnded:
				c.ends <- m
			}
		})
	}
	c.spawn(parent)
	synctest.Wait()
}

func (c *cluster) spawn(producer actor.Producer) *actor.PID {
	return c.system.Root.Spawn(actor.PropsFromProducer(producer))
}

func (c *cluster) send(engine int, m any) { c.system.Root.Send(c.groups[engine], m) }

// reports returns what the coordinator heard of a node so far.
func (c *cluster) reports(engine int) []*v1.Ready {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ready[nodeName(engine)])
}

// await lets time pass until the coordinator has heard of a node.
func (c *cluster) await(engine int) *v1.Ready {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(10 * time.Millisecond) { // on the bubble's clock
		if r := c.reports(engine); len(r) > 0 {
			return r[0]
		}
	}
	c.t.Fatalf("node %s has reported nothing for a minute", nodeName(engine))
	return nil
}

func (c *cluster) close() {
	for _, g := range c.groups {
		if g != nil {
			if err := c.system.Root.PoisonFuture(g).Wait(); err != nil {
				c.t.Error(err)
			}
		}
	}
	c.cancel(errors.New("test over"))
	c.system.Shutdown()
	for _, b := range c.buses {
		if err := b.Close(context.Background()); err != nil {
			c.t.Error(err)
		}
	}
	<-time.After(time.Second) // on the bubble's clock: what the actor library still does ends
}

// two is two nodes of one engine with two ranks each that share their experts.
var two = topology.Layout{DataParallel: 2, TensorParallel: 2, ExpertParallel: true}

func TestGroupsJoin(t *testing.T) {
	for _, tt := range []struct {
		name string
		net  membus.Options
	}{
		{"reliable", membus.Options{}},
		{"lossy", membus.Options{Seed: 1, Loss: 0.5, Duplicate: 0.3, Delay: 80 * time.Millisecond}},
		{"lossier", membus.Options{Seed: 2, Loss: 0.8, Duplicate: 0.3, Delay: 80 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, two, tt.net)
				defer c.close()
				c.start(0)
				<-time.After(3 * time.Second) // the other node is late
				if r := c.reports(0); len(r) > 0 {
					t.Errorf("ready without the other node: %v", r)
				}
				c.start(1)
				for e := range 2 {
					if r := c.await(e); r.GetFailure() != nil || r.GetGroup() != "ep" || r.GetEpoch() != 1 || !slices.Equal(r.GetRanks(), []uint32{uint32(2 * e), uint32(2*e + 1)}) {
						t.Errorf("node %s reports %v", nodeName(e), r)
					}
				}
				var comms []*fakeComm
				for _, r := range c.ranks {
					comms = append(comms, c.check(r, <-r.joined)...)
				}
				c.upAndQuiet()
				cause := errors.New("rank 9 is lost")
				for e := range 2 {
					c.send(e, &actors.AbortEpoch{Epoch: 2, Err: errors.New("another epoch")})
					c.send(e, &actors.AbortEpoch{Epoch: 1, Err: cause})
					c.send(e, &actors.AbortEpoch{Epoch: 1, Err: errors.New("again")})
				}
				synctest.Wait()
				for _, comm := range comms {
					if !slices.Equal(comm.causes, []error{cause}) {
						t.Errorf("rank %d of %s: aborted with %v, want once with %v", comm.group.Rank, comm.group.Name, comm.causes, cause)
					}
				}
			})
		})
	}
}

// check holds what a rank joined to the layout, and returns its communicators.
func (c *cluster) check(r *fakeRank, j *actors.Joined) (comms []*fakeComm) {
	c.t.Helper()
	if j.Err != nil || len(j.Comms) != 2 {
		c.t.Fatalf("rank %d joined %d communicators: %v", r.rank, len(j.Comms), j.Err)
	}
	place := c.layout.Place(r.rank)
	for i, want := range []hal.Group{
		{Name: fmt.Sprintf("ep/tp%d", place.Engine), Epoch: 1, Rank: place.TPRank, Size: 2},
		{Name: "ep/ep", Epoch: 1, Rank: r.rank, Size: 4},
	} {
		comm := j.Comms[i].(*fakeComm)
		comms = append(comms, comm)
		got := comm.group
		if got.Name != want.Name || got.Epoch != want.Epoch || got.Rank != want.Rank || got.Size != want.Size || len(got.Names) != want.Size {
			c.t.Errorf("rank %d joined %+v, want %+v", r.rank, got, want)
		}
		for k, end := range comm.endpoints {
			global := r.rank - want.Rank + k
			if s := fmt.Sprintf("rank %d of %s", global, want.Name); string(end) != s {
				c.t.Errorf("rank %d got %q of member %d, want %q", r.rank, end, k, s)
			}
			if s := fmt.Sprintf("rank %d on node %s", global, nodeName(global/2)); got.Names[k] != s {
				c.t.Errorf("rank %d calls member %d %q, want %q", r.rank, k, got.Names[k], s)
			}
		}
	}
	return comms
}

// upAndQuiet wants Ready to be repeated before the first plan, and nothing sent after it.
func (c *cluster) upAndQuiet() {
	c.t.Helper()
	before := len(c.reports(0))
	<-time.After(20 * time.Second)
	if n := len(c.reports(0)); n < before+2 {
		c.t.Errorf("Ready came %d times and %d times 20 s later, want it repeated", before, n)
	}
	for e := range 2 {
		c.send(e, &actors.GroupUp{Group: "ep", Epoch: 1})
	}
	<-time.After(time.Second) // what is under way arrives
	sent := func() (n uint64) {
		for _, b := range c.buses {
			n += b.Counts().Published
		}
		return n
	}
	quiet := sent()
	<-time.After(time.Hour)
	if n := sent(); n != quiet {
		c.t.Errorf("%d messages in an hour after the first plan", n-quiet)
	}
}

// TestAloneAndTogether wants Ready of groups that need no communicator, and of those whose members are all here.
func TestAloneAndTogether(t *testing.T) {
	for _, tt := range []struct {
		layout topology.Layout
		want   []int // communicators of each rank
	}{
		{topology.Layout{DataParallel: 1, TensorParallel: 1, ExpertParallel: true}, []int{0}},
		{topology.Layout{DataParallel: 2, TensorParallel: 1}, []int{0, 0}},
		{topology.Layout{DataParallel: 2, TensorParallel: 2}, []int{1, 1, 1, 1}},
		{topology.Layout{DataParallel: 1, TensorParallel: 2, ExpertParallel: true}, []int{2, 2}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, tt.layout, membus.Options{})
			defer c.close()
			for e := range tt.layout.DataParallel {
				c.start(e)
				c.await(e)
			}
			for i, r := range c.ranks {
				if j := <-r.joined; j.Err != nil || len(j.Comms) != tt.want[i] {
					t.Errorf("%+v: rank %d joined %d communicators, want %d: %v", tt.layout, i, len(j.Comms), tt.want[i], j.Err)
				}
			}
		})
	}
}

func TestAbsentMemberIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, two, membus.Options{})
		defer c.close()
		c.start(0)
		<-time.After(300 * time.Second)
		c.cancel(errors.New("start-timeout of 5m0s"))
		j := <-c.ranks[0].joined
		const want = "nothing heard of rank 2 on node b, rank 3 on node b, see what is wrong there: start-timeout of 5m0s"
		if j.Err == nil || j.Err.Error() != want {
			t.Errorf("rank 0: %v, want %s", j.Err, want)
		}
		if f := c.await(0).GetFailure(); f.GetNode() != "a" || f.GetLayer() != -1 || f.GetText() != want {
			t.Errorf("node a reports %v, want the failure", f)
		}
		<-c.ranks[1].joined
	})
}

func TestAbortWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, two, membus.Options{})
		defer c.close()
		c.start(0)
		cause := errors.New("engine 1 was given up")
		c.send(0, &actors.AbortEpoch{Epoch: 1, Err: cause})
		for _, r := range c.ranks[:2] {
			j := <-r.joined
			if !errors.Is(j.Err, cause) || hal.ClassOf(j.Err) != hal.Aborted {
				t.Errorf("rank %d: %v, want class aborted with the cause", r.rank, j.Err)
			}
			synctest.Wait()
			if comm := j.Comms[0].(*fakeComm); len(comm.causes) == 0 || !errors.Is(comm.causes[0], cause) {
				t.Errorf("rank %d: its first communicator was aborted with %v, want %v", r.rank, comm.causes, cause)
			}
		}
		if r := c.reports(0); len(r) > 0 {
			t.Errorf("reports of an epoch that is over: %v", r)
		}
	})
}

func TestFailedRankIsReportedUntilTheEpochEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, two, membus.Options{Seed: 3, Loss: 0.5})
		defer c.close()
		c.ranks[1].fail = errors.New("no memory for the communicator")
		c.start(0)
		c.start(1)
		if f := c.await(0).GetFailure(); f.GetRank() != 1 || f.GetNode() != "a" || f.GetText() != "no memory for the communicator" {
			t.Errorf("node a reports %v, want the failure of rank 1", f)
		}
		for e := range 2 {
			c.send(e, &actors.AbortEpoch{Epoch: 1, Err: c.ranks[1].fail})
		}
		for _, r := range c.ranks {
			if j := <-r.joined; !errors.Is(j.Err, c.ranks[1].fail) {
				t.Errorf("rank %d: %v, want the cause", r.rank, j.Err)
			}
		}
		n := len(c.reports(0))
		<-time.After(time.Minute)
		if more := len(c.reports(0)) - n; more > 0 {
			t.Errorf("%d reports after the end of the epoch", more)
		}
	})
}

func TestStopLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, two, membus.Options{})
		c.start(0)
		c.close()
		for _, r := range c.ranks[:2] {
			if j := <-r.joined; !errors.Is(j.Err, errStopped) {
				t.Errorf("rank %d: %v, want %v", r.rank, j.Err, errStopped)
			}
		}
	})
}

func TestClosedBusEndsTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, two, membus.Options{})
		defer c.close()
		closed := c.connect()
		if err := closed.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := Options{Space: space, Bus: closed, Group: two.Groups()[0], Layout: two, Epoch: 1, Node: "a", Ranks: []Rank{{Rank: 0}, {Rank: 1}}, Logger: slog.New(slog.DiscardHandler)}
		c.spawn(func() actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					ctx.Spawn(Props(o))
				case *actors.GroupEnded:
					c.ends <- m
				}
			})
		})
		if m := <-c.ends; m.Group != "ep" || m.Epoch != 1 || !errors.Is(m.Err, bus.ErrClosed) {
			t.Errorf("%+v, want the end of the group with %v", m, bus.ErrClosed)
		}
	})
}

// TestStrangeMessages feeds the bus with what no node says.
func TestStrangeMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, two, membus.Options{})
		defer c.close()
		c.start(0)
		b := c.connect()
		for _, data := range [][]byte{nil, []byte("junk"), {0xff}} {
			if err := b.Publish(space.Endpoints("ep"), data); err != nil {
				t.Fatal(err)
			}
		}
		c.start(1)
		for e := range 2 {
			c.await(e)
		}
		for _, r := range c.ranks {
			c.check(r, <-r.joined)
		}
	})
}
