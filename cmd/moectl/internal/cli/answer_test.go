package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/internal/config"
	"github.com/moerack/moerack/model/token"
)

// Standard input is read no further than the window ahead of the answer that is written next: a producer that is faster than
// the model waits, and memory does not grow with what it has to say.
func TestStandardInputWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken atomic.Int64
		faulty := func(yield func(entry) bool) { // without end; a faulty line needs no node
			for yield(entry{where: "line", err: errors.New("faulty")}) {
				taken.Add(1)
			}
		}
		g := &generation{
			app: &app{Host: host(io.Discard, io.Discard)}, settings: &config.Loaded{Settings: config.Defaults()},
			source: source{lines: faulty},
		}
		ctx, cancel := context.WithCancel(t.Context())
		pending := g.handOver(ctx, nil)
		synctest.Wait() // until all of it waits for a reader
		// 256 in the window, and one each in the hands of those who pass them on.
		first := taken.Load()
		if first < 256 || first > 260 {
			t.Errorf("%d lines were taken while no answer was written, want 256 and a few", first)
		}
		for range 10 {
			<-pending
		}
		synctest.Wait()
		if next := taken.Load(); next != first+10 {
			t.Errorf("%d lines were taken after 10 answers, want %d", next, first+10)
		}
		cancel()
		rest := 0
		for range pending {
			rest++
		}
		if rest < 256 || rest > 260 {
			t.Errorf("%d answers after the end, want those that were handed over", rest)
		}
	})
}

// A prompt of a list is tokenized by its first check only; what follows works with the ids.
func TestPromptsAreTokenizedOnce(t *testing.T) {
	tok, err := token.Load(tinyV3)
	if err != nil {
		t.Fatal(err)
	}
	g := &generation{
		settings: &config.Loaded{Settings: config.Defaults()},
		source:   source{list: []entry{{where: "prompt 0", prompt: prompt{text: "KING HENRY:"}}, {where: "prompt 1", prompt: prompt{ids: []int32{5}}}}},
	}
	limits := gateway.Limits{VocabSize: tok.VocabSize(), MaxModelLen: 100, Engines: 1, Tokenizer: tok}
	if err := g.checkPrompts(g.settings.Settings, limits); err != nil {
		t.Fatal(err)
	}
	want := len(tok.EncodePrompt("KING HENRY:"))
	if got := g.source.list[0].request(0, g.settings.Settings).IDs; len(got) != want || want < 2 {
		t.Errorf("the request has ids %v, want %d", got, want)
	}
	limits.Tokenizer = nil // without it a text could not be checked
	if err := g.checkPrompts(g.settings.Settings, limits); err != nil {
		t.Errorf("second check: %v", err)
	}
	limits.MaxModelLen = 2
	if err := g.checkPrompts(g.settings.Settings, limits); err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "prompt 0: prompt has ") {
		t.Errorf("prompt 0 is not shorter than the model length: %v", err)
	}
}
