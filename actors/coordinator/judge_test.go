package coordinator

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/moerack/moerack/messages/v1"
)

// stuck is where a rank stops to move, and when.
type stuck struct {
	step    uint64
	index   int
	op      string // "": done with the step
	waiting bool
	from    time.Duration // moves with every heartbeat until then
	silent  bool          // no heartbeat of its node after from
}

// in returns a rank that computes forever, at one that waits for others, done one that is through with a step.
func in(step uint64, index int, op string) stuck { return stuck{step: step, index: index, op: op} }

func at(step uint64, index int, op string) stuck {
	return stuck{step: step, index: index, op: op, waiting: true}
}

func done(step uint64) stuck                      { return stuck{step: step} }
func (s stuck) after(d time.Duration) stuck       { s.from = d; return s }
func (s stuck) silentAfter(d time.Duration) stuck { s.from, s.silent = d, true; return s }

// court is a judge of engines 0, 1 on node a and 2, 3 on node b that were told to run step 5 at time 0. Heartbeats come every 200 ms.
type court struct {
	judge   judge
	ranks   []stuck // (4)
	missing []int
	now     time.Duration
}

func newCourt(ranks ...stuck) *court {
	c := &court{judge: newJudge([]int{0, 1, 2, 3}, map[int]string{0: "a", 1: "a", 2: "b", 3: "b"}, "", 1, 3*time.Second), ranks: ranks}
	c.judge.begin(0, 5)
	return c
}

// until plays heartbeats and looks until the verdict or a time.
func (c *court) until(end time.Duration) (*v1.Failure, []int) {
	for ; c.now <= end; c.now += 100 * time.Millisecond {
		if c.now%(200*time.Millisecond) == 0 {
			c.heartbeat(0)
			c.heartbeat(2)
		}
		if due, on := c.judge.next(); on && due <= c.now {
			if f, dead := c.judge.judge(c.now, c.missing); f != nil {
				return f, dead
			}
		}
	}
	return nil, nil
}

func (c *court) heartbeat(first int) {
	m := &v1.Progress{Node: string("aabb"[first])}
	for r := first; r < first+2; r++ {
		s := c.ranks[r]
		if s.silent && c.now > s.from {
			return
		}
		m.Ranks = append(m.Ranks, &v1.RankProgress{
			Rank: uint32(r), Step: s.step, Index: uint32(s.index), Op: s.op, Layer: 2, Running: s.op != "", Waiting: s.waiting,
			Moves: 1 + uint64(min(c.now, s.from)/(200*time.Millisecond)),
		})
	}
	c.judge.progress(c.now, m)
}

const second = time.Second

func TestWhoIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ranks   []stuck
		missing []int
		rank    uint32
		text    string // how it begins or what it holds; "" for no verdict
		by      time.Duration
		dead    []int
	}{
		{
			"the one that computes, not those who wait",
			[]stuck{at(5, 3, "a2e"), at(5, 3, "a2e"), in(5, 2, "attention"), at(5, 3, "a2e")},
			nil,
			2, "no progress for 3s", 3*second + 500*time.Millisecond, nil,
		},
		{
			"also if those who wait were seen to stop before",
			[]stuck{at(5, 3, "a2e"), at(5, 3, "a2e"), in(5, 2, "attention").after(400 * time.Millisecond), at(5, 3, "a2e")},
			nil,
			2, "no progress for 3", 4 * second, nil,
		},
		{
			"the one that computes, though another is behind it and moves",
			[]stuck{in(5, 1, "embed").after(20 * second), in(5, 4, "experts"), at(5, 3, "a2e"), at(5, 5, "e2a")},
			nil,
			1, "no progress for 3s", 4 * second, nil,
		},
		{
			"the smaller step",
			[]stuck{in(5, 1, "embed"), in(4, 9, "logits"), in(5, 1, "embed"), in(5, 1, "embed")},
			nil,
			1, "no progress for 3s", 4 * second, nil,
		},
		{
			"the smaller index",
			[]stuck{in(5, 4, "experts"), in(5, 4, "experts"), in(5, 4, "experts"), in(5, 2, "route")},
			nil,
			3, "no progress for 3s", 4 * second, nil,
		},
		{
			"who has not begun comes before who has",
			[]stuck{in(5, 0, "embed"), done(4), in(5, 0, "embed"), in(5, 0, "embed")},
			nil,
			1, "no progress for 3s", 4 * second, nil,
		},
		{
			"who computes before who waits at the same place",
			[]stuck{at(5, 3, "a2e"), at(5, 3, "a2e"), at(5, 3, "a2e"), in(5, 3, "a2e")},
			nil,
			3, "no progress for 3s", 4 * second, nil,
		},
		{
			"the lower rank, and the others with it",
			[]stuck{done(5), at(5, 3, "a2e"), at(5, 3, "a2e"), at(5, 3, "a2e")},
			nil,
			1, "nor of rank 2, 3 at the same place", 4 * second, nil,
		},
		{
			"a long prefill is no stall, nor is to wait for it",
			[]stuck{at(5, 3, "a2e"), at(5, 3, "a2e"), in(5, 2, "attention").after(30 * second), at(5, 3, "a2e")},
			nil,
			0, "", 20 * second, nil,
		},
		{
			"a node without a sign of life",
			[]stuck{at(5, 7, "e2a"), at(5, 7, "e2a"), in(5, 2, "attention").silentAfter(second), at(5, 3, "a2e").silentAfter(second)},
			nil,
			2, "no sign of life of node b for 3", 5 * second,
			[]int{2, 3},
		},
		{
			"a silent node before those at the same place",
			[]stuck{at(5, 3, "a2e"), at(5, 3, "a2e"), at(5, 3, "a2e").silentAfter(0), at(5, 3, "a2e").silentAfter(0)},
			nil,
			2, "no sign of life of node b for 3s, nor progress of its rank for 3s", 4 * second,
			[]int{2, 3},
		},
		{
			"a rank that stands, though the heartbeats of its node are late",
			[]stuck{at(5, 3, "a2e"), at(5, 3, "a2e"), in(5, 2, "attention").silentAfter(2400 * time.Millisecond), at(5, 3, "a2e").after(3 * second)},
			nil,
			0, "", 3 * second, nil,
		},
		{
			"whose vote lacks though all ranks are through",
			[]stuck{done(5), done(5), done(5), done(5)},
			[]int{1, 3},
			1, "no vote for the step in 3s of engine 1 on node a, engine 3 on node b", 4 * second,
			[]int{1, 3},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCourt(tt.ranks...)
			c.missing = tt.missing
			f, dead := c.until(tt.by)
			switch {
			case tt.text == "" && f != nil:
				t.Fatalf("at %s: rank %d: %s; want no verdict", c.now, f.Rank, f.Text)
			case tt.text == "":
			case f == nil:
				t.Fatalf("no verdict until %s", tt.by)
			case c.now < 3*second || f.Rank != tt.rank || !strings.Contains(f.Text, tt.text) || !slices.Equal(dead, tt.dead):
				t.Errorf("at %s: rank %d: %s, dead %v; want rank %d: %s, dead %v", c.now, f.Rank, f.Text, dead, tt.rank, tt.text, tt.dead)
			}
		})
	}
}

func TestVerdictSaysWhere(t *testing.T) {
	f, _ := newCourt(at(5, 3, "a2e"), at(5, 3, "a2e"), in(5, 2, "attention"), at(5, 3, "a2e")).until(4 * second)
	if f == nil || f.Node != "b" || f.Step != 5 || f.Op != "attention" || f.Layer != 2 {
		t.Errorf("%v; want node b, step 5, attention, layer 2", f)
	}
}

// TestEndOfALongWait: one that has waited for a long operation is not blamed when that is through, before it is heard of again.
func TestEndOfALongWait(t *testing.T) {
	c := newCourt(in(5, 2, "attention").after(20*second), at(5, 3, "a2e"), at(5, 3, "a2e"), at(5, 3, "a2e"))
	if f, _ := c.until(20 * second); f != nil {
		t.Fatalf("at %s: verdict %v", c.now, f)
	}
	c.judge.progress(c.now, &v1.Progress{Node: "a", Ranks: []*v1.RankProgress{{Rank: 0, Step: 5, Moves: 1000}}})
	c.ranks[0] = done(5)
	if f, _ := c.until(22 * second); f != nil {
		t.Errorf("at %s: verdict %v", c.now, f)
	}
	if f, _ := c.until(24 * second); f == nil || f.Rank != 1 {
		t.Errorf("at %s: verdict %v; want rank 1, which stays there", c.now, f)
	}
}

// TestStepUnderAPark: votes are given ahead, so the step before a park can still run. Who hangs in it is named; a node that is silent
// is through with it.
func TestStepUnderAPark(t *testing.T) {
	c := newCourt(at(5, 3, "a2e"), in(5, 2, "attention"), at(5, 3, "a2e"), at(5, 3, "a2e"))
	c.judge.park(0)
	if f, _ := c.until(5 * second); f == nil || f.Rank != 1 {
		t.Errorf("verdict %v, want rank 1", f)
	}

	c = newCourt(in(5, 2, "attention").silentAfter(second), in(5, 2, "attention").silentAfter(second), in(5, 2, "attention").silentAfter(second), in(5, 2, "attention").silentAfter(second))
	c.judge.park(0)
	if f, _ := c.until(20 * second); f != nil {
		t.Errorf("verdict %v on ranks whose last heartbeat was lost", f)
	}
	if at, on := c.judge.next(); on {
		t.Errorf("parked, and looks again at %s", at)
	}
	c.judge.progress(c.now, &v1.Progress{Node: "a", Ranks: []*v1.RankProgress{{Rank: 0, Step: 5, Op: "a2e", Running: true, Moves: 99}}})
	if _, on := c.judge.next(); !on {
		t.Error("a rank that is still in the step is not watched")
	}
}

func TestCall(t *testing.T) {
	lost := func() *court { // engine 0 is in step 5; the others are through, and the heartbeats that said so are lost
		c := newCourt(in(5, 2, "attention"), at(5, 9, "tokens"), in(5, 8, "logits").silentAfter(0), in(5, 8, "logits").silentAfter(0))
		c.judge.park(0)
		if f, _ := c.until(2 * second); f != nil {
			t.Fatalf("verdict %v before the Call", f)
		}
		c.judge.call(c.now, 7)
		return c
	}
	c := lost()
	c.missing = []int{0, 1}
	if f, _ := c.until(3*second + 500*time.Millisecond); f == nil || f.Rank != 0 {
		t.Errorf("verdict %v, want rank 0: it has been stuck for 3 s, whatever was called since", f)
	}
	c = lost()
	c.missing = []int{2}
	f, _ := c.until(4900 * time.Millisecond)
	if f != nil {
		t.Errorf("verdict %v within the stall time after the Call: what is owed by the silent begins with it", f)
	}
	if f, dead := c.until(6 * second); f == nil || f.Rank != 2 || !strings.Contains(f.Text, "no sign of life of node b") || !slices.Equal(dead, []int{2, 3}) {
		t.Errorf("verdict %v, dead %v; want node b", f, dead)
	}
}

// TestLateJudge: a judge that was held up hears first what has come meanwhile.
func TestLateJudge(t *testing.T) {
	c := newCourt(in(5, 2, "attention"), at(5, 3, "a2e"), at(5, 3, "a2e"), at(5, 3, "a2e"))
	c.now = 10 * second
	if f, _ := c.judge.judge(c.now, nil); f != nil {
		t.Fatalf("verdict %v on old news", f)
	}
	for i := range c.ranks {
		c.ranks[i].from = 20 * second // everybody has moved
	}
	if f, _ := c.until(15 * second); f != nil {
		t.Errorf("verdict %v on ranks that move", f)
	}
}

// TestStoppedJudge: the time in which the judge's process was stopped is nobody's: who only was not heard of meanwhile is not named, and
// who hangs is, after the stall time.
func TestStoppedJudge(t *testing.T) {
	for name, stop := range map[string]time.Duration{"a moment": 1500 * time.Millisecond, "longer": 2500 * time.Millisecond, "an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			moving := in(5, 2, "attention").after(2 * time.Hour)
			c := newCourt(moving, moving, moving, in(5, 2, "attention").after(second))
			if f, _ := c.until(2 * second); f != nil {
				t.Fatalf("verdict %v before the stop", f)
			}
			c.now += stop
			back := c.now
			full := 3 * second   // of which it has stood one or two before
			if stop < 2*second { // the looks show 600 ms of it; before it the rank had stood for 1.1 s
				full = second
			}
			// For a while nothing comes, as the connection was given up meanwhile.
			for ; c.now < back+600*time.Millisecond; c.now += 100 * time.Millisecond {
				if due, on := c.judge.next(); on && due <= c.now {
					if f, _ := c.judge.judge(c.now, nil); f != nil {
						t.Fatalf("%s after the stop: verdict %v", c.now-back, f)
					}
				}
			}
			f, _ := c.until(back + 5*second)
			if took := c.now - back; f == nil || f.Rank != 3 || took < full-300*time.Millisecond || took > full+300*time.Millisecond {
				t.Errorf("%s after the stop: verdict %v; want rank 3 after %s", took, f, full)
			}
		})
	}
}

// TestMuteBus: where nobody is heard any more, the node beside the judge included, the bus is what is silent. Nobody is judged when it
// carries again, and the bus itself is given up in the end.
func TestMuteBus(t *testing.T) {
	moving := in(5, 2, "attention").after(time.Hour)
	begin := func() *court {
		c := newCourt(moving, moving, moving, moving)
		c.judge.own = "a"
		return c
	}
	silence := func(c *court, d time.Duration) {
		for end := c.now + d; c.now < end; c.now += 100 * time.Millisecond {
			if due, on := c.judge.next(); on && due <= c.now {
				if f, _ := c.judge.judge(c.now, nil); f != nil {
					t.Fatalf("at %s: verdict %v", c.now, f)
				}
			}
		}
	}
	c := begin()
	if f, _ := c.until(2 * second); f != nil {
		t.Fatalf("at %s: verdict %v", c.now, f)
	}
	silence(c, 8*second)
	if f, _ := c.until(20 * second); f != nil {
		t.Errorf("at %s, when the bus carries again: verdict %v", c.now, f)
	}
	silence(c, 8*second)
	for i := range c.ranks {
		c.ranks[i] = moving.silentAfter(0)
	}
	if f, dead := c.until(40 * second); f == nil || f.Node != "" || len(dead) > 0 || !strings.HasPrefix(f.Text, "the bus has not carried a message for 9") {
		t.Errorf("at %s: verdict %v, dead %v; want the bus", c.now, f, dead)
	}

	c = begin()
	c.ranks[0], c.ranks[2], c.ranks[3] = in(5, 2, "attention"), moving.silentAfter(0), moving.silentAfter(0)
	if f, _ := c.until(4 * second); f == nil || f.Node != "b" {
		t.Errorf("at %s: verdict %v; want node b: the node beside the judge is heard", c.now, f)
	}
}

// TestDeafJudge: as long as the judge's own connection is down, and for two seconds after, silence means nothing.
func TestDeafJudge(t *testing.T) {
	silent := at(5, 3, "a2e").silentAfter(0)
	c := newCourt(silent, silent, silent, silent)
	down := time.Duration(0)
	for ; c.now < 10*second; down = c.now {
		c.judge.deafen(c.now)
		if f, _ := c.until(c.now); f != nil {
			t.Fatalf("at %s: verdict %v", c.now, f)
		}
	}
	if f, _ := c.until(down + 800*time.Millisecond); f != nil {
		t.Errorf("at %s: verdict %v", c.now, f)
	}
	if f, _ := c.until(down + 2*second); f == nil {
		t.Error("no verdict on nodes that stay silent")
	}
}
