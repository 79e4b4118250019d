package script

import (
	"encoding/json"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// counters are the parts of a stats file that are compared with one another.
type counters struct {
	Steps int64 `json:"steps"`
	Bus   struct {
		Votes int64 `json:"votes"`
		Plans int64 `json:"plans"`
	} `json:"bus"`
	Engines []struct {
		Steps      int64 `json:"steps"`
		DummySteps int64 `json:"dummy_steps"`
	} `json:"engines"`
	Ranks []struct {
		WeightBytes int64 `json:"weight_bytes"`
	} `json:"ranks"`
}

func readCounters(ts *testscript.TestScript, path string) (c counters) {
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(path)), &c))
	return c
}

// busy checks "busy FILE": a vote and a plan passed the bus for every step.
func busy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: busy FILE")
	}
	if c := readCounters(ts, args[0]); c.Steps == 0 || c.Bus.Votes < c.Steps || c.Bus.Plans < c.Steps {
		ts.Fatalf("%d votes and %d plans passed the bus in %d steps, want one of each per step at least", c.Bus.Votes, c.Bus.Plans, c.Steps)
	}
}

// inStep checks "instep FILE LEAST MOST ENGINE REAL": all engines took part in all steps, of which there are LEAST to MOST, and ENGINE had
// rows of its own in REAL of them.
func inStep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: instep FILE LEAST MOST ENGINE REAL")
	}
	var n [4]int64
	for i, text := range args[1:] {
		var err error
		n[i], err = strconv.ParseInt(text, 10, 64)
		ts.Check(err)
	}
	least, most, engine, own := n[0], n[1], n[2], n[3]
	c := readCounters(ts, args[0])
	if c.Steps < least || c.Steps > most {
		ts.Fatalf("%d steps, want %d to %d", c.Steps, least, most)
	}
	for i, e := range c.Engines {
		if e.Steps != c.Steps {
			ts.Fatalf("engine %d took part in %d steps of %d", i, e.Steps, c.Steps)
		}
	}
	if engine < 0 || engine >= int64(len(c.Engines)) {
		ts.Fatalf("%d engines, want one with number %d", len(c.Engines), engine)
	}
	if got := c.Steps - c.Engines[engine].DummySteps; got != own {
		ts.Fatalf("engine %d had rows in %d steps, want %d", engine, got, own)
	}
}

// shrinks checks "shrinks FILE1 FILE2": every rank of the first run holds less weights than the one rank of the second.
func shrinks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shrinks FILE1 FILE2")
	}
	shared, alone := readCounters(ts, args[0]), readCounters(ts, args[1])
	if len(shared.Ranks) < 2 || len(alone.Ranks) != 1 {
		ts.Fatalf("%d ranks and %d, want several and 1", len(shared.Ranks), len(alone.Ranks))
	}
	for i, r := range shared.Ranks {
		if r.WeightBytes <= 0 || r.WeightBytes >= alone.Ranks[0].WeightBytes {
			ts.Fatalf("rank %d has %d bytes of weights, one rank alone %d", i, r.WeightBytes, alone.Ranks[0].WeightBytes)
		}
	}
}

// lighter checks "lighter FILE1 FILE2 SHARE": the weights of the first run's ranks take at most that share of the second's.
func lighter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: lighter FILE1 FILE2 SHARE")
	}
	most, err := strconv.ParseFloat(args[2], 64)
	ts.Check(err)
	bytes := func(file string) (n float64) {
		for _, r := range readCounters(ts, file).Ranks {
			n += float64(r.WeightBytes)
		}
		return n
	}
	if a, b := bytes(args[0]), bytes(args[1]); a <= 0 || a > most*b {
		ts.Fatalf("%g bytes of weights and %g, want at most %g of them", a, b, most)
	}
}
