package scheduler

import (
	"testing"

	"github.com/moerack/moerack/actors"
)

// alone makes a core of an engine that is a group of its own, called for its first step.
func alone(s Settings) *core {
	s.Epoch = 1
	c := newCore(s, &standing{ranks: 1, epoch: 1})
	c.stand.call(&actors.Called{Epoch: 1, Step: 1})
	return c
}

// turn votes for a step, has it planned and run, and returns the requests that got a token, none if the group parks.
func turn(t testing.TB, c *core) (sampled []actors.Sampled) {
	t.Helper()
	v := c.vote()
	if v == nil {
		t.Fatalf("may not vote after plan %d", c.stand.at)
	}
	p := planFor(v)
	if !c.planned(p, 1) {
		t.Fatalf("plan %d is no news", p.Step)
	}
	if p.Action == actors.Park {
		return nil
	}
	f := c.stand.flights[0]
	for _, rows := range f.batch.Rows {
		if rows.Sample {
			sampled = append(sampled, actors.Sampled{Request: rows.Request, Token: 7})
		}
	}
	c.stand.drop(f)
	if _, err := c.done(p.Step, sampled); err != nil {
		t.Fatal(err)
	}
	return sampled
}

// TestPromptsNeverStopAnAnswer: while new prompts keep coming, an answer gets a token in every step.
func TestPromptsNeverStopAnAnswer(t *testing.T) {
	c := alone(Settings{ModelLen: 64, MaxNumBatchedTokens: 8, MaxNumSeqs: 4, BlockSize: 4, KVBlocks: 64})
	c.submit(1, []int32{1}, &actors.Request{MaxTokens: 20})
	for i := range 20 {
		c.submit(actors.RequestID(i+2), make([]int32, 30), &actors.Request{MaxTokens: 1})
		if sampled := turn(t, c); len(sampled) == 0 || sampled[0].Request != 1 {
			t.Fatalf("step %d gives %v: request 1 must be in every step", i, sampled)
		}
	}
	if _, running := c.byID[1]; running {
		t.Error("request 1 has its 20 tokens and still runs")
	}
}

// TestAbortsOfWaitingRequests: those that ended while they waited are passed over, and the others keep their order.
func TestAbortsOfWaitingRequests(t *testing.T) {
	c := alone(Settings{ModelLen: 8, MaxNumBatchedTokens: 8, MaxNumSeqs: 2, BlockSize: 4, KVBlocks: 64})
	for i := range 100 {
		c.submit(actors.RequestID(i), []int32{1}, &actors.Request{MaxTokens: 1})
	}
	for i := range 100 {
		if i%7 != 3 {
			c.end(actors.RequestID(i))
		}
	}
	var got []actors.RequestID
	for c.requests() > 0 {
		for _, s := range turn(t, c) {
			got = append(got, s.Request)
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
