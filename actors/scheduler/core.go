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
	waiting []*request // first come first; those that ended meanwhile are passed over
	ended   int        // how many of them
	running []*request // in order of admission; each has its blocks
	flight  []*request // of the step at the rank, one for each of its Rows; nil if there is none
	batch   *actors.Batch
	wave    uint64
	step    uint64 // number of the step in flight, or of the next one
	parked  bool
}

// run is an effect: hand plan and batch to the rank.
type run struct {
	plan   actors.Plan
	batch  *actors.Batch
	prompt int // how many of its rows are prompt tokens
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
	q := &request{id: id, tokens: slices.Clip(prompt), prompt: len(prompt), limit: limit, sampling: r.Sampling, ignoreEOS: r.IgnoreEOS}
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
		c.ended++
		if c.ended > len(c.waiting)/2 { // rarely enough that many aborts cost no more than their number
			c.waiting = slices.DeleteFunc(c.waiting, func(r *request) bool { return r.ended })
			c.ended = 0
		}
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
	prompt := 0
	for i, q := range flight {
		if q.prefilling() {
			prompt += len(batch.Rows[i].Tokens)
		}
	}
	// An engine of one rank that shares no experts is a group of its own: it is engine 0 there, and its vote is all there is.
	vote := actors.Vote{
		Term: c.set.Term, Epoch: c.set.Epoch, Wave: c.wave, Step: c.step,
		Rows: rows,
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
	return &run{plan, batch, prompt}, nil
}

// admit gives waiting requests their blocks, in order, as long as there is room.
func (c *core) admit() {
	taken := 0
	for _, q := range c.waiting {
		if q.ended {
			c.ended--
			taken++
			continue
		}
		if len(c.running) >= c.seats() {
			break
		}
		blocks, ok := c.pool.Alloc(kv.BlocksFor(q.limit, c.set.BlockSize))
		if !ok {
			break
		}
		q.blocks = blocks
		q.tokens = append(make([]int32, 0, q.limit), q.tokens...) // of its own: the answer is appended
		c.running = append(c.running, q)
		taken++
	}
	clear(c.waiting[:taken])
	c.waiting = c.waiting[taken:]
}

// seats returns how many requests may run: each must fit into a step with one row.
func (c *core) seats() int { return min(c.set.MaxNumSeqs, c.set.MaxNumBatchedTokens) }

// build makes a batch of one row for each request that generates and, with the rest of the budget, prompt chunks in order of
// admission.
func (c *core) build() (*actors.Batch, []*request) {
	batch, flight := &actors.Batch{}, make([]*request, 0, len(c.running))
	budget := c.set.MaxNumBatchedTokens
	for _, q := range c.running {
		if !q.prefilling() {
			budget--
		}
	}
	for _, q := range c.running {
		n := 1
		if q.prefilling() {
			n = min(q.prompt-q.fed, budget)
			budget -= n
		}
		if n > 0 {
			batch.Rows, flight = append(batch.Rows, q.rows(n, c.set.BlockSize)), append(flight, q)
		}
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
