package expertgroup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/moerack/moerack/hal"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

// told writes effects as a line: "heard ep 1 b1; announce ep [0 1] complete; report: why; abort: why".
func told(effects []effect) string {
	var out []string
	for _, e := range effects {
		switch e := e.(type) {
		case announce:
			s := fmt.Sprintf("announce %s %v", e.circle.kind, e.circle.own())
			if e.circle.missing == 0 {
				s += " complete"
			}
			out = append(out, s)
		case heard:
			out = append(out, fmt.Sprintf("heard %s %d %s", e.kind, e.rank, e.data))
		case report:
			s := "report"
			if e.failure != nil {
				s += ": " + e.failure.Error()
			}
			out = append(out, s)
		case abort:
			out = append(out, "abort: "+e.cause.Error())
		}
	}
	return strings.Join(out, "; ")
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// both is two engines of two ranks that share their experts.
var both = topology.Layout{DataParallel: 2, TensorParallel: 2, ExpertParallel: true}

// coreA is node a with the first of the two engines.
func coreA() *core { return newCore(both.Groups()[0], both, 1, "a", []int{0, 1}) }

// other is what node b tells of its ranks.
func other(ranks ...int) map[int][]byte {
	out := map[int][]byte{}
	for _, r := range ranks {
		out[r] = fmt.Appendf(nil, "b%d", r)
	}
	return out
}

var errBoom = errors.New("boom")

func TestCore(t *testing.T) {
	type line struct {
		do   func(c *core) []effect
		want string
	}
	publish := func(at int, kind string, rank int) func(c *core) []effect {
		return func(c *core) []effect { return c.onPublished(ms(at), kind, rank, fmt.Appendf(nil, "a%d", rank)) }
	}
	hear := func(kind string, complete bool, ranks ...int) func(c *core) []effect {
		return func(c *core) []effect { return c.onEndpoints("b", kind, 1, other(ranks...), complete) }
	}
	join := func(at, rank int, err error) func(c *core) []effect {
		return func(c *core) []effect { return c.onJoined(ms(at), rank, 1, err) }
	}
	tick := func(at int) func(c *core) []effect {
		return func(c *core) []effect { return c.tick(ms(at)) }
	}
	plan := func(epoch uint64) func(c *core) []effect {
		return func(c *core) []effect { c.onUp(epoch); return nil }
	}
	end := func(epoch uint64, err error) func(c *core) []effect {
		return func(c *core) []effect { return c.onAbort(epoch, err) }
	}
	for _, tt := range []struct {
		name  string
		lines []line
		phase phase
	}{
		{"the way up", []line{
			{publish(0, "tp0", 0), "heard tp0 0 a0"},
			{publish(0, "tp0", 1), "heard tp0 1 a1"},
			{tick(50), ""},
			{publish(100, "ep", 0), "heard ep 0 a0"},
			{publish(110, "ep", 1), "heard ep 1 a1; announce ep [0 1]"},
			{hear("ep", true, 2, 3), "heard ep 2 b2; heard ep 3 b3"},
			{join(120, 1, nil), ""},
			{join(130, 0, nil), "report"},
			{tick(179), ""},
			{tick(180), "report"},
			{tick(279), ""},
			{tick(280), "report"},
			{plan(1), ""},
			{tick(5000), ""},
		}, up},
		{"repeated until all are heard of", []line{
			{publish(0, "ep", 0), "heard ep 0 a0"},
			{tick(49), ""},
			{tick(50), "announce ep [0]"},
			{publish(60, "ep", 1), "heard ep 1 a1; announce ep [0 1]"},
			{tick(110), "announce ep [0 1]"},
			{hear("ep", false, 2), "heard ep 2 b2"},
			{tick(210), "announce ep [0 1]"},
			{hear("ep", false, 2, 3), "heard ep 3 b3; announce ep [0 1] complete"},
			{tick(5000), ""},
		}, joining},
		{"whoever has all answers who lacks some, and only that one", []line{
			{publish(0, "ep", 0), "heard ep 0 a0"},
			{publish(0, "ep", 1), "heard ep 1 a1; announce ep [0 1]"},
			{hear("ep", true, 2, 3), "heard ep 2 b2; heard ep 3 b3"},
			{hear("ep", false, 2, 3), "announce ep [0 1] complete"},
			{hear("ep", true, 2, 3), ""},
			{join(10, 0, nil), ""},
			{join(10, 1, nil), "report"},
			{plan(1), ""},
			{hear("ep", false, 2, 3), "announce ep [0 1] complete"},
		}, up},
		{"the first endpoint counts", []line{
			{hear("ep", false, 2), "heard ep 2 b2"},
			{func(c *core) []effect { return c.onEndpoints("b", "ep", 1, map[int][]byte{2: []byte("x")}, false) }, ""},
			{publish(0, "ep", 0), "heard ep 0 a0"},
			{publish(0, "ep", 0), ""},
		}, joining},
		{"what is not ours or no sense is ignored", []line{
			{func(c *core) []effect { return c.onEndpoints("b", "ep", 2, other(2, 3), false) }, ""},
			{func(c *core) []effect { return c.onEndpoints("b", "ep", 0, other(2, 3), false) }, ""},
			{func(c *core) []effect { return c.onEndpoints("a", "ep", 1, other(2, 3), false) }, ""},
			{hear("tp1", false, 0, 1), ""},
			{hear("ep", false, -1, 0, 1, 4, 1<<32-1), ""},
			{func(c *core) []effect { return c.onJoined(0, 0, 2, nil) }, ""},
			{join(0, 2, nil), ""},
			{plan(1), ""},
			{end(2, errBoom), ""},
		}, joining},
		{"an empty endpoint is one", []line{
			{func(c *core) []effect { return c.onEndpoints("b", "ep", 1, map[int][]byte{2: nil}, false) }, "heard ep 2 "},
			{hear("ep", false, 3), "heard ep 3 b3"},
		}, joining},
		{"a rank that cannot join", []line{
			{join(0, 1, errBoom), "report: rank 1 on node a: boom"},
			{join(0, 0, nil), ""},
			{tick(50), "report: rank 1 on node a: boom"},
			{plan(1), ""},
			{join(60, 0, errors.New("later")), ""},
			{end(1, errors.New("epoch 2")), "abort: epoch 2"},
			{tick(5000), ""},
		}, aborted},
		{"a consequence gives way to the cause", []line{
			{join(0, 1, &hal.Error{Op: "Join", Device: "d", Class: hal.Aborted, Detail: "gone"}), "report: rank 1 on node a: d: Join: gone [aborted]"},
			{join(0, 0, errBoom), "report: rank 0 on node a: boom"},
			{join(0, 1, &hal.Error{Class: hal.Aborted}), ""},
		}, failed},
		{"abort while joining", []line{
			{publish(0, "ep", 0), "heard ep 0 a0"},
			{end(1, errBoom), "abort: boom"},
			{end(1, errors.New("second")), ""},
			{publish(0, "ep", 1), "heard ep 1 a1"},
			{hear("ep", false, 2), ""},
			{join(10, 0, nil), "abort: boom"},
			{join(10, 1, errBoom), "abort: boom"},
			{tick(5000), ""},
		}, aborted},
		{"abort of what runs", []line{
			{join(0, 0, nil), ""},
			{join(0, 0, nil), ""},
			{join(0, 1, nil), "report"},
			{plan(1), ""},
			{join(0, 1, errBoom), ""},
			{end(1, errBoom), "abort: boom"},
			{plan(1), ""},
		}, aborted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := coreA()
			for i, l := range tt.lines {
				if got := told(l.do(c)); got != l.want {
					t.Errorf("line %d: %q, want %q", i+1, got, l.want)
				}
			}
			if c.phase != tt.phase {
				t.Errorf("phase %s, want %s", c.phase, tt.phase)
			}
		})
	}
}

func TestCircles(t *testing.T) {
	for _, tt := range []struct {
		layout topology.Layout
		group  int
		ranks  []int
		want   string // kind:members:local …
	}{
		{topology.Layout{DataParallel: 1, TensorParallel: 1, ExpertParallel: true}, 0, []int{0}, ""},
		{topology.Layout{DataParallel: 3, TensorParallel: 1}, 2, []int{2}, ""},
		{topology.Layout{DataParallel: 2, TensorParallel: 2}, 1, []int{2, 3}, "tp1:2…3:[2 3]"},
		{topology.Layout{DataParallel: 1, TensorParallel: 2, ExpertParallel: true}, 0, []int{0, 1}, "tp0:0…1:[0 1] ep:0…1:[0 1]"},
		{topology.Layout{DataParallel: 4, TensorParallel: 1, ExpertParallel: true}, 0, []int{2, 3}, "ep:0…3:[2 3]"},
		{topology.Layout{DataParallel: 3, TensorParallel: 2, ExpertParallel: true}, 0, []int{2, 3, 4, 5}, "tp1:2…3:[2 3] tp2:4…5:[4 5] ep:0…5:[2 3 4 5]"},
	} {
		var got []string
		for _, o := range newCore(tt.layout.Groups()[tt.group], tt.layout, 1, "a", tt.ranks).circles {
			var local []int
			for _, r := range o.local {
				local = append(local, r)
			}
			slices.Sort(local)
			got = append(got, fmt.Sprintf("%s:%d…%d:%v", o.kind, o.from, o.to-1, local))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%+v, ranks %v: %q, want %q", tt.layout, tt.ranks, s, tt.want)
		}
	}
}

// TestCoresFindEachOther runs the cores of random clusters over a network that loses and doubles, on a clock of its own: whatever is lost,
// all nodes hear of all ranks, and then nobody says anything more.
func TestCoresFindEachOther(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	for i := range 200 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		layout := topology.Layout{DataParallel: 2 + r.IntN(5), TensorParallel: 1 + r.IntN(2), ExpertParallel: true}
		var cores []*core
		for e := 0; e < layout.DataParallel; {
			engines := 1 + r.IntN(layout.DataParallel-e)
			var ranks []int
			for k := e * layout.TensorParallel; k < (e+engines)*layout.TensorParallel; k++ {
				ranks = append(ranks, k)
			}
			cores = append(cores, newCore(layout.Groups()[0], layout, 1, fmt.Sprint("n", len(cores)), ranks))
			e += engines
		}
		said := 0
		var send func(from *core, effects []effect, loss float64)
		send = func(from *core, effects []effect, loss float64) {
			for _, e := range effects {
				a, ok := e.(announce)
				if !ok {
					continue
				}
				said++
				endpoints := map[int][]byte{}
				for _, k := range a.circle.own() {
					endpoints[k] = *a.circle.have[k]
				}
				for _, to := range cores {
					if to == from || r.Float64() < loss {
						continue
					}
					for range 1 + r.IntN(2) {
						send(to, to.onEndpoints(from.node, a.circle.kind, 1, endpoints, a.circle.missing == 0), loss)
					}
				}
			}
		}
		missing := func() (n int) {
			for _, c := range cores {
				n += c.circle(epKind).missing
			}
			return n
		}
		now := time.Duration(0)
		for _, c := range cores {
			for _, k := range c.ranks {
				send(c, c.onPublished(now, epKind, k, fmt.Appendf(nil, "at %d", k)), 0.7)
			}
		}
		for ; missing() > 0 && now < 5*time.Minute; now += ms(10) {
			for _, c := range cores {
				send(c, c.tick(now), 0.7)
			}
		}
		if n := missing(); n > 0 {
			t.Fatalf("run %d: %+v: %d endpoints missing after %s", i, layout, n, now)
		}
		for _, c := range cores {
			for k, data := range c.circle(epKind).have {
				if want := fmt.Sprint("at ", k); string(*data) != want {
					t.Fatalf("run %d: node %s has %q of rank %d, want %q", i, c.node, *data, k, want)
				}
			}
		}
		said = 0
		for _, c := range cores {
			send(c, c.tick(now+time.Hour), 0)
		}
		if said > 0 {
			t.Fatalf("run %d: %d announcements when all is known", i, said)
		}
	}
}

// FuzzEndpoints gives a core whatever can come over the bus.
func FuzzEndpoints(f *testing.F) {
	seed := func(m *v1.Endpoints) {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	seed(&v1.Endpoints{Group: "ep", Kind: "ep", Epoch: 1, Node: "b", Endpoints: []*v1.Endpoint{{Rank: 2, Data: []byte("b2")}, {Rank: 3}}})
	seed(&v1.Endpoints{Kind: "ep", Epoch: 1, Endpoints: []*v1.Endpoint{{Rank: 0}, {Rank: 1 << 31}, {Rank: 3}}, Complete: true})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &v1.Endpoints{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		c := coreA()
		c.onEndpoints(m.GetNode(), m.GetKind(), m.GetEpoch(), decodeEndpoints(m), m.GetComplete())
		o := c.circle(epKind)
		if o.have[0] != nil || o.have[1] != nil {
			t.Error("endpoints of ranks here came from elsewhere")
		}
		known := 0
		for _, h := range o.have {
			if h != nil {
				known++
			}
		}
		if known+o.missing != len(o.have) {
			t.Errorf("%d known and %d missing of %d", known, o.missing, len(o.have))
		}
	})
}
