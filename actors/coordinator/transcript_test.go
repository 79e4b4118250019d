package coordinator

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/moerack/moerack/messages/v1"
	"github.com/moerack/moerack/topology"
)

var rewrite = flag.Bool("rewrite", false, "write what the core does into testdata/*.txt; read the diff before keeping it")

// TestTranscripts plays testdata/*.txt: a line "> command" and below it what follows from it.
//
//	> group tp=1 [own=a]              a new core: engines 0 and 1 on node a, 2 on node b, itself on own; stall time 3 s
//	> ready a 0,1 [epoch=1] [failure=text]
//	> votes a step=1 0=2 1=0d [epoch=1]    rows of engines, d: it drains
//	> wake b [epoch=1]
//	> progress b rank=2 step=4 op=a2e moves=7 [done]
//	> done b step=4 [epoch=1] [failure=text rank=2] [nobody]    nobody: no rank is to blame
//	> leave                           the coordinator ends
//	> wait 50ms                       the time passes; what is due happens
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
	t     *testing.T
	out   strings.Builder
	group *group
	now   time.Duration
}

func (p *player) say(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *player) command(words []string) {
	args := map[string]string{"epoch": "1", "rank": "0", "own": "a"}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		args[key] = value
	}
	number := func(key string) uint64 { return p.number(args[key]) }
	node := ""
	if len(words) > 1 {
		node = words[1]
	}
	var failure *v1.Failure
	if text, ok := args["failure"]; ok {
		failure = &v1.Failure{Rank: uint32(number("rank")), Node: node, Text: text}
		if slices.Contains(words, "nobody") {
			failure.Node = ""
		}
	}
	switch words[0] {
	case "group":
		p.now = 0
		nodes := map[int]string{0: "a", 1: "a", 2: "b"}
		p.group = newGroup(topology.Group{Name: "ep", Engines: []int{0, 1, 2}}, nodes, args["own"], int(number("tp")), topology.AllGather, 3*time.Second)
	case "ready":
		m := &v1.Ready{Epoch: number("epoch"), Node: node, Failure: failure}
		for _, r := range strings.Split(words[2], ",") {
			m.Ranks = append(m.Ranks, uint32(p.number(r)))
		}
		p.group.onReady(p.now, m)
	case "votes":
		p.group.onVotes(p.now, p.votes(node, args))
	case "wake":
		p.group.onWake(p.now, &v1.Wake{Epoch: number("epoch"), Node: node})
	case "progress":
		_, done := args["done"]
		p.group.onProgress(p.now, &v1.Progress{Epoch: number("epoch"), Node: node, Ranks: []*v1.RankProgress{{
			Rank: uint32(number("rank")), Step: number("step"), Op: args["op"], Running: !done, Moves: number("moves"),
		}}})
	case "done":
		p.group.onDone(p.now, &v1.Done{Epoch: number("epoch"), Node: node, Step: number("step"), Failure: failure})
	case "leave":
		p.group.leave(p.now, "node a has closed")
	case "wait":
		p.wait(node)
		return
	default:
		p.t.Fatalf("unknown command %q", words[0])
	}
	p.effects()
}

func (p *player) votes(node string, args map[string]string) *v1.Votes {
	m := &v1.Votes{Epoch: p.number(args["epoch"]), Step: p.number(args["step"]), Node: node}
	for e := range uint32(9) {
		if rows, ok := args[strconv.Itoa(int(e))]; ok {
			n, drain := strings.CutSuffix(rows, "d")
			m.Votes = append(m.Votes, &v1.Vote{Engine: e, Rows: uint32(p.number(n)), Drain: drain})
		}
	}
	return m
}

// wait lets the time pass from one tick to the next.
func (p *player) wait(text string) {
	d, err := time.ParseDuration(text)
	if err != nil {
		p.t.Fatal(err)
	}
	for end := p.now + d; ; {
		at, ok := p.group.next()
		if !ok || at > end {
			p.now = end
			p.effects()
			return
		}
		p.now = max(p.now, at)
		p.group.tick(p.now)
		if len(p.group.out) > 0 {
			p.effects()
		}
	}
}

// effects says what the core sends, and whether it wants to be woken.
func (p *player) effects() {
	for _, o := range p.group.take() {
		switch {
		case o.call != nil:
			p.say("  call: epoch %d wave %d step %d, members %v, cause %q", o.call.Epoch, o.call.Wave, o.call.Step, o.call.Members, o.call.Cause.GetText())
		case o.mute != nil:
			p.say("  told past the bus: %v", o.mute)
		case o.node == "":
			p.say("  plan for all: step %d wave %d %s, rows %v, drain %v, pad to %d", o.plan.Step, o.plan.Wave, o.plan.Action, o.plan.Rows, o.plan.Drain, o.plan.PadTo)
		default:
			p.say("  plan for %s: step %d %s", o.node, o.plan.Step, o.plan.Action)
		}
	}
	text := fmt.Sprintf("  at %s", p.now)
	if _, ok := p.group.next(); !ok {
		text += ", no tick"
	}
	if p.group.leaving {
		text += fmt.Sprintf(", left %v", p.group.left(p.now))
	}
	p.say("%s", text)
}

func (p *player) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}
