package agent

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moerack/moerack/actors"
	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

var rewrite = flag.Bool("rewrite", false, "write what the core does into testdata/*.txt; read the diff before keeping it")

// TestTranscripts plays testdata/*.txt: a line "> command" and below it what follows from it.
//
//	> node 0,1                    a new core of node a, with engines 0 and 1 of 0, 1, 2; stall time 3 s
//	> call step=1 wave=1 epoch=1 [term=1] [cause=text]
//	> vote 0 step=1 rows=2 [epoch=1] [drain]
//	> plan step=1 wave=1 rows=2,0,0 [epoch=1] [term=1] [members=0,1,2] [pad=2] [wrong-hash]    run if there are rows, else park
//	> wake 0 [epoch=1]
//	> broken 0 step=3             rank 0 has failed
//	> leave [cause]               the node ends
//	> deaf                        the bus is not connected
//	> stop 1m                     the process stands still
//	> wait 50ms                   the time passes; what is due happens
//	> through                     from now on reports show that the ranks are through
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if got == string(want) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s: the core does\n%s", file, got)
		})
	}
}

// play runs the commands of a transcript and returns it with what the core did below each.
func play(t *testing.T, transcript string) string {
	p := player{t: t}
	for line := range strings.Lines(transcript) {
		command, ok := strings.CutPrefix(line, "> ")
		switch {
		case ok:
			p.out.WriteString(line)
			p.command(strings.Fields(command))
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
			p.out.WriteString(line)
		}
	}
	return p.out.String()
}

type player struct {
	t       *testing.T
	out     strings.Builder
	core    *Core
	now     time.Duration
	through bool
}

func (p *player) say(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *player) command(words []string) {
	args := map[string]string{"epoch": "1", "wave": "1", "term": "1"}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		args[key] = value
	}
	number := func(key string) int { return p.number(args[key]) }
	first := ""
	if len(words) > 1 {
		first = words[1]
	}
	switch words[0] {
	case "node":
		p.now, p.core, p.through = 0, NewCore("a", "ep", p.numbers(first), 3*time.Second), false
	case "call":
		m := &v1.Call{Group: "ep", Term: uint64(number("term")), Epoch: uint64(number("epoch")), Wave: uint64(number("wave")), Step: uint64(number("step")), Members: []uint32{0, 1, 2}}
		if text, ok := args["cause"]; ok {
			m.Cause = &v1.Failure{Rank: 2, Node: "b", Step: 4, Op: "a2e", Layer: 1, Text: text}
		}
		p.core.OnCall(p.now, m)
	case "vote":
		_, drain := args["drain"]
		p.core.OnVote(p.now, &actors.Vote{Epoch: uint64(number("epoch")), Step: uint64(number("step")), Engine: p.number(first), Rows: number("rows"), Drain: drain})
	case "plan":
		p.core.OnPlan(p.now, p.plan(args))
	case "wake":
		p.core.OnWake(p.now, &actors.Wake{Engine: p.number(first), Epoch: uint64(number("epoch"))})
	case "broken":
		p.core.OnBroken(p.now, &actors.Broken{Epoch: 1, Failure: &actors.Failure{
			Rank: p.number(first), Node: "a", Step: uint64(number("step")), Layer: -1, Err: fmt.Errorf("fault"),
		}})
	case "leave":
		var cause error
		if first != "" {
			cause = errors.New(first)
		}
		p.core.OnLeave(p.now, cause)
	case "deaf":
		p.core.Deafen(p.now)
	case "stop":
		p.now += p.duration(first)
		return
	case "through":
		p.through = true
	case "wait":
		p.wait(first)
		return
	default:
		p.t.Fatalf("unknown command %q", words[0])
	}
	p.effects()
}

func (p *player) plan(args map[string]string) *actors.Plan {
	plan := &actors.Plan{
		Group: "ep", Term: uint64(p.number(args["term"])), Epoch: uint64(p.number(args["epoch"])), Wave: uint64(p.number(args["wave"])), Step: uint64(p.number(args["step"])),
		Action: actors.Park, Members: []int{0, 1, 2}, Rows: p.numbers(args["rows"]), Drain: make([]bool, 3), PadTo: 1, Exchange: topology.AllGather, Stages: 1,
	}
	for _, r := range plan.Rows {
		if r > 0 {
			plan.Action = actors.Run
		}
		plan.PadTo = max(plan.PadTo, r)
	}
	if members, ok := args["members"]; ok {
		plan.Members = p.numbers(members)
	}
	if pad, ok := args["pad"]; ok {
		plan.PadTo = p.number(pad)
	}
	plan.Hash = plan.Sum()
	if _, wrong := args["wrong-hash"]; wrong {
		plan.Hash++
	}
	return plan
}

// wait lets the time pass from one tick to the next.
func (p *player) wait(text string) {
	for end := p.now + p.duration(text); ; {
		at, ok := p.core.Next()
		if !ok || at > end {
			p.now = end
			return
		}
		p.now = max(p.now, at)
		p.core.Tick(p.now)
		p.effects()
	}
}

// effects says what the core does, and when it wants to be woken.
func (p *player) effects() {
	for _, effect := range p.core.Take() {
		p.effect(effect)
	}
	if at, ok := p.core.Next(); ok {
		p.say("  at %s, next tick at %s", p.now, at)
	} else {
		p.say("  at %s, no tick", p.now)
	}
}

func (p *player) effect(effect any) {
	switch e := effect.(type) {
	case *v1.Votes:
		p.say("  votes for step %d wave %d:%s missing %v", e.Step, e.Wave, votes(e.Votes), e.Missing)
	case *v1.Wake:
		p.say("  wake for wave %d from engines %v", e.Wave, e.Engines)
	case *v1.Done:
		p.say("  done: epoch %d step %d, failure %q", e.Epoch, e.Step, e.Failure.GetText())
	case Report:
		p.say("  report on step %d, through %v", e.Step, p.through)
		p.core.Reported(e, p.through)
	case ForEngine:
		p.forEngine(e)
	case *Left:
		p.say("  left")
	case Refused:
		p.say("  refused: %v", e.Reason)
	case *actors.AbortEpoch:
		p.say("  abort epoch %d: %v", e.Epoch, e.Err)
	case *actors.GroupUp:
		p.say("  group up in epoch %d", e.Epoch)
	case *actors.GroupEnded:
		p.say("  group ended in epoch %d: %v", e.Epoch, e.Err)
	default:
		p.t.Fatalf("unknown effect %T", effect)
	}
}

func (p *player) forEngine(e ForEngine) {
	switch m := e.Message.(type) {
	case *actors.Planned:
		p.say("  engine %d: planned step %d, %s", e.Engine, m.Plan.Step, m.Plan.Action)
	case *actors.Called:
		p.say("  engine %d: called for step %d wave %d", e.Engine, m.Step, m.Wave)
	case *actors.EpochEnded:
		p.say("  engine %d: epoch %d ended", e.Engine, m.Epoch)
	default:
		p.t.Fatalf("unknown message %T", m)
	}
}

func votes(list []*v1.Vote) string {
	out := ""
	for _, v := range list {
		out += fmt.Sprintf(" %d has %d rows", v.Engine, v.Rows)
		if v.Drain {
			out += " and drains"
		}
		out += ","
	}
	return out
}

func (p *player) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

func (p *player) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *player) numbers(list string) []int {
	var out []int
	for _, w := range strings.Split(list, ",") {
		out = append(out, p.number(w))
	}
	return out
}
