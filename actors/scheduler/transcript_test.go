package scheduler

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
)

var rewrite = flag.Bool("rewrite", false, "write what the core does into testdata/*.txt; read the diff before keeping it")

// TestTranscripts plays testdata/*.txt: a line "> command" and below it what follows from it.
//
//	> engine seqs=2 rows=4 blocks=8 block=2 len=8 eos=9    a new core, called for step 1
//	> submit 1 1,2,3 max=2 [ignore_eos] [stops]
//	> vote                                                 for the step after the last plan, if it may
//	> run | park                                           the plan of that step
//	> done 5,6                                             tokens for the rows of the oldest step that sample: "nan" for an error, "m" for padding
//	> failed 3 | end 1 | wake | call | drain | drained | restart
//	> ranks                                                what the ranks have of the steps in flight, and begin
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
	var out strings.Builder
	p := player{t: t, say: func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }}
	for line := range strings.Lines(transcript) {
		command, ok := strings.CutPrefix(line, "> ")
		switch {
		case ok:
			out.WriteString(line)
			p.command(strings.Fields(command))
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
			out.WriteString(line)
		}
	}
	return out.String()
}

type player struct {
	t     *testing.T
	say   func(format string, args ...any)
	core  *core
	stand *standing
	set   Settings
	voted *actors.Vote
}

func (p *player) command(words []string) {
	switch words[0] {
	case "engine":
		p.engine(words[1:])
	case "submit":
		r := &actors.Request{IgnoreEOS: slices.Contains(words, "ignore_eos")}
		if slices.Contains(words, "stops") {
			r.Stop = []string{"x"}
		}
		r.MaxTokens = p.number(strings.TrimPrefix(words[3], "max="))
		if !p.core.submit(actors.RequestID(p.number(words[1])), p.ids(words[2]), r) {
			p.say("nothing to generate")
		}
	case "vote":
		p.vote()
	case "run":
		p.plan(actors.Run)
	case "park":
		p.plan(actors.Park)
	case "done":
		p.done(words[1])
	case "failed":
		step := uint64(p.number(words[1]))
		if f := p.stand.flight(step); f != nil {
			p.stand.drop(f)
		}
		ended, err := p.core.failed(step)
		p.say("ended %v, free %d, error %v", ended, p.core.pool.FreeBlocks(), err)
	case "end":
		p.say("%v, free %d", p.core.end(actors.RequestID(p.number(words[1]))), p.core.pool.FreeBlocks())
	case "wake":
		p.say("%v", p.stand.wake(p.core.work()))
	case "call":
		p.say("%v", p.stand.call(&actors.Called{Epoch: 1, Step: p.stand.at + 1}))
	case "drain":
		p.stand.drain = true
	case "drained":
		p.say("%v", p.core.drained())
	case "ranks":
		for _, f := range p.stand.flights {
			if p.core.held(f.plan.Step) {
				p.say("step %d is held", f.plan.Step)
			} else {
				p.say("step %d: masked %v", f.plan.Step, f.batch.Begin())
			}
		}
	case "restart":
		p.stand.abandon()
		p.core = newCore(p.set, p.stand)
	default:
		p.t.Fatalf("unknown command %q", words[0])
	}
}

func (p *player) engine(words []string) {
	p.set = Settings{Epoch: 1}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "seqs":
			p.set.MaxNumSeqs = p.number(value)
		case "rows":
			p.set.MaxNumBatchedTokens = p.number(value)
		case "blocks":
			p.set.KVBlocks = p.number(value)
		case "block":
			p.set.BlockSize = p.number(value)
		case "len":
			p.set.ModelLen = p.number(value)
		case "eos":
			p.set.EOS = p.ids(value)
		default:
			p.t.Fatalf("engine: what is %q?", w)
		}
	}
	p.stand = &standing{ranks: 1, epoch: 1}
	p.core = newCore(p.set, p.stand)
	p.stand.call(&actors.Called{Epoch: 1, Step: 1})
}

func (p *player) vote() {
	v := p.core.vote()
	if v == nil {
		p.say("may not vote")
		return
	}
	p.voted = v
	drain := ""
	if v.Drain {
		drain = ", drain"
	}
	p.say("step %d: %d rows, queue %d%s, free %d", v.Step, v.Rows, v.Queue, drain, p.core.pool.FreeBlocks())
	for _, rows := range p.core.voted.batch.Rows {
		sample, ends := "", ""
		if rows.Sample {
			sample = ", sample"
		}
		if rows.Ends != nil {
			ends = fmt.Sprintf(", unless %v", rows.Ends)
		}
		p.say("  request %d: %v at %d, blocks %v%s%s", rows.Request, rows.Tokens, rows.Position, rows.Blocks, ends, sample)
	}
}

func (p *player) plan(a actors.Action) {
	v := p.voted
	plan := &actors.Plan{Epoch: 1, Step: v.Step, Action: a, Members: []int{0}, Rows: []int{v.Rows}, Drain: []bool{v.Drain}}
	if !p.core.planned(plan, 1) {
		p.say("no news")
	}
}

func (p *player) done(list string) {
	f := p.stand.flights[0]
	var sampled []actors.Sampled
	tokens := strings.Split(list, ",")
	for _, rows := range f.batch.Rows {
		if !rows.Sample || list == "-" || len(tokens) == 0 {
			continue
		}
		s := actors.Sampled{Request: rows.Request}
		switch tokens[0] {
		case "nan":
			s.Err = fmt.Errorf("not finite")
		case "m":
			s.Masked = true
		default:
			s.Token = int32(p.number(tokens[0]))
		}
		sampled, tokens = append(sampled, s), tokens[1:]
	}
	o, err := p.core.done(f.plan.Step, sampled)
	if err != nil {
		p.say("error: %v", err)
		return
	}
	p.stand.drop(f)
	p.say("step %d: %d of %d rows were real, %d of prompts", f.plan.Step, o.rows, f.rows, o.prompt)
	for _, k := range o.tokens {
		end := ""
		if k.finish != "" {
			end = fmt.Sprintf(", ends with %s", k.finish)
		}
		p.say("  request %d: token %d%s, free %d", k.id, k.sampled.Token, end, p.core.pool.FreeBlocks())
	}
}

func (p *player) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *player) ids(s string) []int32 {
	var out []int32
	for w := range strings.SplitSeq(s, ",") {
		out = append(out, int32(p.number(w)))
	}
	return out
}
