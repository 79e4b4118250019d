package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/actortest"
	"github.com/moerack/moerack/model/kv"
)

// story is what a request of the property test should see, and what it saw.
type story struct {
	prompt   []int32
	want     []int32 // the answer if nothing stops it
	ignore   bool
	stopAt   int // tokens after which the shell stops it, as for a stop string; 0 never
	got      []int32
	fed      []int // times each position was fed
	finish   actors.FinishReason
	finishes int
}

// TestCore plays random arrivals, aborts, stops and failed steps against the core and checks after each step what must
// always hold: rows within the budget, every position fed once and in order with the right token, blocks owned by one
// request, the pool whole at the end, each request ended exactly once.
func TestCore(t *testing.T) {
	for seed := range uint64(300) {
		if err := playRandom(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

type world struct {
	r       *rand.Rand
	set     Settings
	core    *core
	stories map[actors.RequestID]*story
	last    actors.RequestID
	vocab   int
}

func playRandom(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{r: r, vocab: 2 + r.IntN(12), stories: map[actors.RequestID]*story{}}
	block := 1 + r.IntN(5)
	length := 4 + r.IntN(30)
	w.set = Settings{
		Term: 1, Epoch: 1, ModelLen: length, MaxNumBatchedTokens: 1 + r.IntN(12), MaxNumSeqs: 1 + r.IntN(6),
		BlockSize: block, KVBlocks: kv.BlocksFor(length, block) + r.IntN(20), EOS: []int32{int32(r.IntN(w.vocab))},
	}
	w.core = newCore(w.set)
	for i := range 400 {
		if i < 250 && r.IntN(3) == 0 {
			w.arrive()
		}
		if err := w.act(); err != nil {
			return fmt.Errorf("after %d turns: %w", i, err)
		}
	}
	for range 100000 { // until nothing is left
		if len(w.core.byID) == 0 && w.core.flight == nil {
			return w.check()
		}
		if err := w.act(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d requests never end", len(w.core.byID))
}

func (w *world) arrive() {
	w.last++
	n := 1 + w.r.IntN(w.set.ModelLen-1)
	s := &story{ignore: w.r.IntN(2) == 0, fed: make([]int, w.set.ModelLen)}
	for range n {
		s.prompt = append(s.prompt, int32(w.r.IntN(w.vocab)))
	}
	most := w.r.IntN(12)
	s.want = actortest.Answer(s.prompt, min(most, w.set.ModelLen-n), w.vocab)
	if i := slices.Index(s.want, w.set.EOS[0]); i >= 0 && !s.ignore {
		s.want = s.want[:i+1]
	}
	if w.r.IntN(4) == 0 {
		s.stopAt = 1 + w.r.IntN(4)
	}
	w.stories[w.last] = s
	if !w.core.submit(w.last, s.prompt, &actors.Request{MaxTokens: most, IgnoreEOS: s.ignore}) {
		w.finish(s, actors.FinishLength)
	}
}

func (w *world) finish(s *story, reason actors.FinishReason) {
	s.finish, s.finishes = reason, s.finishes+1
}

// act is one turn: an abort perhaps, then a step that is begun, done or failed.
func (w *world) act() error {
	if w.r.IntN(12) == 0 && w.last > 0 {
		id := 1 + actors.RequestID(w.r.IntN(int(w.last)))
		if w.core.end(id) {
			w.finish(w.stories[id], actors.FinishAbort)
		}
	}
	if w.core.flight == nil {
		run, err := w.core.next()
		if err != nil || run == nil {
			if err == nil && len(w.core.byID) > 0 {
				err = fmt.Errorf("parked with %d requests", len(w.core.byID))
			}
			return err
		}
		return w.begun(run)
	}
	step, batch := w.core.step, w.core.batch
	if w.r.IntN(25) == 0 {
		ended, err := w.core.failed(step)
		for _, id := range ended {
			w.finish(w.stories[id], actors.FinishError)
		}
		return err
	}
	return w.land(step, batch)
}

// begun checks a step and feeds its rows.
func (w *world) begun(run *run) error {
	rows := run.batch.Tokens()
	if rows < 1 || rows > w.set.MaxNumBatchedTokens || run.plan.PadTo != rows || run.plan.Rows[0] != rows {
		return fmt.Errorf("step %d: %d rows of at most %d, plan %+v", run.plan.Step, rows, w.set.MaxNumBatchedTokens, run.plan)
	}
	if len(run.batch.Rows) > w.set.MaxNumSeqs {
		return fmt.Errorf("step %d: %d sequences of at most %d", run.plan.Step, len(run.batch.Rows), w.set.MaxNumSeqs)
	}
	owner := map[int32]actors.RequestID{}
	for _, r := range run.batch.Rows {
		s := w.stories[r.Request]
		all := append(slices.Clone(s.prompt), s.got...)
		for i, token := range r.Tokens {
			p := r.Position + i
			if s.fed[p]++; s.fed[p] != 1 || token != all[p] || p > 0 && s.fed[p-1] == 0 {
				return fmt.Errorf("request %d: token %d fed at position %d, %d times; want %d once, in order", r.Request, token, p, s.fed[p], all[p])
			}
		}
		if end := r.Position + len(r.Tokens); end > len(r.Blocks)*w.set.BlockSize || r.Sample != (end == len(all)) {
			return fmt.Errorf("request %d: rows end at %d of %d, %d blocks, sample %v", r.Request, end, len(all), len(r.Blocks), r.Sample)
		}
		for _, b := range r.Blocks {
			if other, taken := owner[b]; taken {
				return fmt.Errorf("block %d belongs to requests %d and %d", b, other, r.Request)
			}
			owner[b] = r.Request
		}
	}
	return nil
}

// land gives the step in flight its tokens.
func (w *world) land(step uint64, batch *actors.Batch) error {
	var sampled []actors.Sampled
	for _, r := range batch.Rows {
		if r.Sample {
			s := w.stories[r.Request]
			sampled = append(sampled, actors.Sampled{Request: r.Request, Token: actortest.Next(append(slices.Clone(s.prompt), s.got...), w.vocab)})
		}
	}
	told, err := w.core.done(step, sampled)
	for _, k := range told {
		s := w.stories[k.id]
		s.got = append(s.got, k.sampled.Token)
		switch {
		case k.finish != "":
			w.finish(s, k.finish)
		case len(s.got) == s.stopAt:
			w.core.end(k.id)
			w.finish(s, actors.FinishStop)
		}
	}
	return err
}

// check is what must hold when all is over.
func (w *world) check() error {
	if w.core.pool.FreeBlocks() != w.core.pool.Total() {
		return fmt.Errorf("%d of %d blocks are free", w.core.pool.FreeBlocks(), w.core.pool.Total())
	}
	for id, s := range w.stories {
		if s.finishes != 1 {
			return fmt.Errorf("request %d ended %d times", id, s.finishes)
		}
		if !slices.Equal(s.got, s.want[:min(len(s.got), len(s.want))]) {
			return fmt.Errorf("request %d got %v, want %v", id, s.got, s.want)
		}
		whole := len(s.got) == len(s.want)
		byEOS := whole && !s.ignore && len(s.got) > 0 && s.got[len(s.got)-1] == w.set.EOS[0]
		byString := len(s.got) == s.stopAt
		if s.finish == actors.FinishStop && !byEOS && !byString || s.finish == actors.FinishLength && !whole {
			return fmt.Errorf("request %d ended with %s after %d of %d tokens", id, s.finish, len(s.got), len(s.want))
		}
	}
	return nil
}

// TestPromptsNeverStopAnAnswer: while new prompts keep coming, an answer gets a token in every step.
func TestPromptsNeverStopAnAnswer(t *testing.T) {
	c := newCore(Settings{ModelLen: 64, MaxNumBatchedTokens: 8, MaxNumSeqs: 4, BlockSize: 4, KVBlocks: 64})
	c.submit(1, []int32{1}, &actors.Request{MaxTokens: 20})
	for i := range 20 {
		c.submit(actors.RequestID(i+2), make([]int32, 30), &actors.Request{MaxTokens: 1})
		r, err := c.next()
		if err != nil || r == nil {
			t.Fatalf("step %d: %v, %v", i, r, err)
		}
		var sampled []actors.Sampled
		for _, rows := range r.batch.Rows {
			if rows.Sample {
				sampled = append(sampled, actors.Sampled{Request: rows.Request, Token: 7})
			}
		}
		if sampled[0].Request != 1 {
			t.Fatalf("step %d runs %v: request 1 must be in every step", i, sampled)
		}
		if _, err := c.done(r.plan.Step, sampled); err != nil {
			t.Fatal(err)
		}
	}
	if _, running := c.byID[1]; running {
		t.Error("request 1 has its 20 tokens and still runs")
	}
}

// TestAbortsOfWaitingRequests: those that ended while they waited are passed over, and the others keep their order.
func TestAbortsOfWaitingRequests(t *testing.T) {
	c := newCore(Settings{ModelLen: 8, MaxNumBatchedTokens: 8, MaxNumSeqs: 2, BlockSize: 4, KVBlocks: 64})
	for i := range 100 {
		c.submit(actors.RequestID(i), []int32{1}, &actors.Request{MaxTokens: 1})
	}
	for i := range 100 {
		if i%7 != 3 {
			c.end(actors.RequestID(i))
		}
	}
	var got []actors.RequestID
	for {
		r, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			break
		}
		var sampled []actors.Sampled
		for _, rows := range r.batch.Rows {
			got = append(got, rows.Request)
			sampled = append(sampled, actors.Sampled{Request: rows.Request, Token: 7})
		}
		if _, err := c.done(r.plan.Step, sampled); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range got {
		if want := actors.RequestID(7*i + 3); id != want {
			t.Fatalf("ran %v, want every seventh from 3", got)
		}
	}
	if len(got) != 14 || len(c.waiting) != 0 || c.ended != 0 || c.pool.FreeBlocks() != 64 {
		t.Errorf("ran %d, %d still listed, %d counted as ended, %d blocks free", len(got), len(c.waiting), c.ended, c.pool.FreeBlocks())
	}
}
