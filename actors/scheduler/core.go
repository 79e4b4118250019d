package scheduler

import (
	"fmt"
	"slices"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/kv"
)

// core decides for one engine. Its methods take what happened and return what follows from it; it does nothing itself. The
// shell calls next after everything that may give work, and carries out what it returns.
type core struct {
	set     Settings
	pool    *kv.Pool
	byID    map[actors.RequestID]*request
	waiting []*request // first come first
	running []*request // in order of admission; each has its blocks
	flight  []*request // of the step at the rank, one for each of its Rows; nil if there is none
	batch   *actors.Batch
	wave    uint64
	step    uint64 // number of the step in flight, or of the next one
	parked  bool
}

// run is an effect: hand plan and batch to the rank.
type run struct {
	plan    actors.Plan
	batch   *actors.Batch
	prefill bool // its rows are prompt tokens, else generated ones
}

// token is an effect: a request got a token, and ended with it if finish is set.
type token struct {
	id      actors.RequestID
	sampled actors.Sampled
	finish  actors.FinishReason
	err     error
}

func newCore(s Settings) *core {
	return &core{set: s, pool: kv.NewPool(s.KVBlocks), byID: map[actors.RequestID]*request{}, parked: true}
}

// submit takes a request and reports whether it has to run; one that may generate nothing has ended already, with length.
func (c *core) submit(id actors.RequestID, prompt []int32, r *actors.Request) bool {
	limit := min(len(prompt)+min(r.MaxTokens, c.set.ModelLen), c.set.ModelLen)
	if limit <= len(prompt) {
		return false
	}
	tokens := make([]int32, len(prompt), limit)
	copy(tokens, prompt)
	q := &request{id: id, tokens: tokens, prompt: len(prompt), limit: limit, sampling: r.Sampling, ignoreEOS: r.IgnoreEOS}
	c.byID[id] = q
	c.waiting = append(c.waiting, q)
	return true
}

// end takes a request out, wherever it is, and frees its blocks. Its rows of the step in flight run and are forgotten; the
// steps that may write the blocks anew come behind it. It reports whether the request was there.
func (c *core) end(id actors.RequestID) bool {
	q, ok := c.byID[id]
	if !ok {
		return false
	}
	q.ended = true
	delete(c.byID, id)
	if q.blocks == nil {
		c.waiting = slices.DeleteFunc(c.waiting, func(r *request) bool { return r == q })
		return true
	}
	c.running = slices.DeleteFunc(c.running, func(r *request) bool { return r == q })
	c.pool.Free(q.blocks)
	q.blocks = nil
	return true
}

// next builds the batch of the next step, votes and plans. It returns nil while a step is in flight and when there is no
// work: then the last plan was a park.
func (c *core) next() (*run, error) {
	if c.flight != nil {
		return nil, nil
	}
	c.admit()
	batch, flight := c.build()
	rows := batch.Tokens()
	if rows == 0 && c.parked {
		return nil, nil
	}
	prefill := rows > 0 && flight[0].prefilling()
	// An engine of one rank that shares no experts is a group of its own: it is engine 0 there, and its vote is all there is.
	vote := actors.Vote{
		Term: c.set.Term, Epoch: c.set.Epoch, Wave: c.wave, Step: c.step,
		Rows: rows, Queue: c.takeable(),
	}
	plan, err := actors.MakePlan([]actors.Vote{vote}, 1, 1)
	if err != nil {
		return nil, err
	}
	if plan.Action == actors.Park {
		c.step++
		c.wave++
		c.parked = true
		return nil, nil
	}
	c.parked = false
	c.batch, c.flight = batch, flight
	for i, q := range flight {
		q.fed += len(batch.Rows[i].Tokens)
	}
	return &run{plan, batch, prefill}, nil
}

// admit gives waiting requests their blocks, in order, as long as there is room.
func (c *core) admit() {
	for len(c.waiting) > 0 && len(c.running) < c.seats() {
		q := c.waiting[0]
		blocks, ok := c.pool.Alloc(kv.BlocksFor(q.limit, c.set.BlockSize))
		if !ok {
			return
		}
		q.blocks = blocks
		c.waiting = slices.Delete(c.waiting, 0, 1)
		c.running = append(c.running, q)
	}
}

// seats returns how many requests may run: each must fit into a step with one row.
func (c *core) seats() int { return min(c.set.MaxNumSeqs, c.set.MaxNumBatchedTokens) }

// takeable counts the waiting requests that the next step could take.
func (c *core) takeable() int {
	n, free := 0, c.pool.FreeBlocks()
	for _, q := range c.waiting {
		if free -= kv.BlocksFor(q.limit, c.set.BlockSize); free < 0 || len(c.running)+n >= c.seats() {
			break
		}
		n++
	}
	return n
}

// build makes a batch of prompt chunks, or without any of them one row for each running request.
func (c *core) build() (*actors.Batch, []*request) {
	batch, flight := &actors.Batch{}, make([]*request, 0, len(c.running))
	budget := c.set.MaxNumBatchedTokens
	for _, q := range c.running {
		if n := min(q.prompt-q.fed, budget); n > 0 {
			batch.Rows, flight = append(batch.Rows, q.rows(n)), append(flight, q)
			budget -= n
		}
	}
	if len(flight) > 0 {
		return batch, flight
	}
	for _, q := range c.running {
		batch.Rows, flight = append(batch.Rows, q.rows(1)), append(flight, q)
	}
	return batch, flight
}

// done takes what the step in flight gave: the tokens in the order of its rows that sample. Requests that ended meanwhile
// get nothing. With an error nothing has changed.
func (c *core) done(step uint64, sampled []actors.Sampled) ([]token, error) {
	if err := c.inFlight(step); err != nil {
		return nil, err
	}
	sampling := make([]*request, 0, len(sampled))
	for n, q := range c.flight {
		if c.batch.Rows[n].Sample {
			sampling = append(sampling, q)
		}
	}
	if !slices.EqualFunc(sampling, sampled, func(q *request, s actors.Sampled) bool { return q.id == s.Request }) {
		return nil, fmt.Errorf("step %d: %d tokens for %d requests, or for others: rank and scheduler disagree on the batch", step, len(sampled), len(sampling))
	}
	out := make([]token, 0, len(sampled))
	for i, q := range sampling {
		if !q.ended {
			out = append(out, c.token(q, sampled[i]))
		}
	}
	c.landed()
	return out, nil
}

// token appends a token to a request and ends the request if it is the last.
func (c *core) token(q *request, s actors.Sampled) token {
	t := token{id: q.id, sampled: s}
	if s.Err != nil {
		t.finish, t.err = actors.FinishError, s.Err
		c.end(q.id)
		return t
	}
	q.tokens = append(q.tokens, s.Token)
	switch {
	case !q.ignoreEOS && slices.Contains(c.set.EOS, s.Token):
		t.finish = actors.FinishStop
	case len(q.tokens) >= q.limit:
		t.finish = actors.FinishLength
	default:
		return t
	}
	c.end(q.id)
	return t
}

// failed takes that the step in flight gave nothing, and returns the requests that end with it.
func (c *core) failed(step uint64) ([]actors.RequestID, error) {
	if err := c.inFlight(step); err != nil {
		return nil, err
	}
	var ids []actors.RequestID
	for _, q := range c.flight {
		if !q.ended {
			ids = append(ids, q.id)
			c.end(q.id)
		}
	}
	c.landed()
	return ids, nil
}

func (c *core) inFlight(step uint64) error {
	if c.flight == nil || step != c.step {
		return fmt.Errorf("answer for step %d; in flight is step %d (%d requests)", step, c.step, len(c.flight))
	}
	return nil
}

func (c *core) landed() {
	c.flight, c.batch = nil, nil
	c.step++
}
