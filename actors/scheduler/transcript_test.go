package scheduler

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/moerack/moerack/actors"
)

var rewrite = flag.Bool("rewrite", false, "write what the core does into testdata/*.txt; read the diff before keeping it")

// TestTranscripts plays testdata/*.txt: a line "> command" and below it what follows from it.
//
//	> engine seqs=2 rows=4 blocks=8 block=2 len=8 eos=9    a new core
//	> submit 1 1,2,3 max=2 [ignore_eos]
//	> next                                                 the next step
//	> done 5,6                                             tokens for the rows that sample, "nan" for an error
//	> failed | end 1
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
	var p player
	for line := range strings.Lines(transcript) {
		command, ok := strings.CutPrefix(line, "> ")
		switch {
		case ok:
			out.WriteString(line)
			p.command(t, &out, strings.Fields(command))
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
			out.WriteString(line)
		}
	}
	return out.String()
}

type player struct {
	core *core
	step *run
}

func (p *player) command(t *testing.T, out *strings.Builder, words []string) {
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	switch words[0] {
	case "engine":
		s := Settings{Term: 1, Epoch: 1}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "seqs":
				s.MaxNumSeqs = number(t, value)
			case "rows":
				s.MaxNumBatchedTokens = number(t, value)
			case "blocks":
				s.KVBlocks = number(t, value)
			case "block":
				s.BlockSize = number(t, value)
			case "len":
				s.ModelLen = number(t, value)
			case "eos":
				s.EOS = ids(t, value)
			default:
				t.Fatalf("engine: what is %q?", w)
			}
		}
		p.core = newCore(s)
	case "submit":
		r := &actors.Request{IgnoreEOS: len(words) > 4 && words[4] == "ignore_eos"}
		r.MaxTokens = number(t, strings.TrimPrefix(words[3], "max="))
		if !p.core.submit(actors.RequestID(number(t, words[1])), ids(t, words[2]), r) {
			say("nothing to generate")
		}
	case "next":
		p.next(t, say)
	case "done":
		p.done(t, say, words[1])
	case "failed":
		ended, err := p.core.failed(p.step.plan.Step)
		say("ended %v, free %d, error %v", ended, p.core.pool.FreeBlocks(), err)
	case "end":
		say("%v, free %d", p.core.end(actors.RequestID(number(t, words[1]))), p.core.pool.FreeBlocks())
	default:
		t.Fatalf("unknown command %q", words[0])
	}
}

func (p *player) next(t *testing.T, say func(string, ...any)) {
	r, err := p.core.next()
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case r != nil:
		p.step = r
		say("step %d wave %d: %s, %d rows, %d of prompts, free %d", r.plan.Step, r.plan.Wave, r.plan.Action, r.plan.PadTo, r.prompt, p.core.pool.FreeBlocks())
		for _, rows := range r.batch.Rows {
			sample := ""
			if rows.Sample {
				sample = ", sample"
			}
			say("  request %d: %v at %d, blocks %v%s", rows.Request, rows.Tokens, rows.Position, rows.Blocks, sample)
		}
	case p.core.flight != nil:
		say("a step is in flight")
	default:
		say("parked, wave %d, %d waiting", p.core.wave, len(p.core.waiting))
	}
}

func (p *player) done(t *testing.T, say func(string, ...any), list string) {
	var sampled []actors.Sampled
	tokens := strings.Split(list, ",")
	for _, rows := range p.step.batch.Rows {
		if !rows.Sample || list == "-" || len(tokens) == 0 {
			continue
		}
		s := actors.Sampled{Request: rows.Request}
		if tokens[0] == "nan" {
			s.Err = fmt.Errorf("not finite")
		} else {
			s.Token = int32(number(t, tokens[0]))
		}
		sampled, tokens = append(sampled, s), tokens[1:]
	}
	told, err := p.core.done(p.step.plan.Step, sampled)
	if err != nil {
		say("error: %v", err)
	}
	for _, k := range told {
		end := ""
		if k.finish != "" {
			end = fmt.Sprintf(", ends with %s", k.finish)
		}
		say("request %d: token %d%s, free %d", k.id, k.sampled.Token, end, p.core.pool.FreeBlocks())
	}
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ids(t *testing.T, s string) []int32 {
	var out []int32
	for w := range strings.SplitSeq(s, ",") {
		out = append(out, int32(number(t, w)))
	}
	return out
}
