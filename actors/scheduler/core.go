package scheduler

import (
	"fmt"
	"slices"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/kv"
)

// core decides for one engine. Its methods take what happened and return what follows from it; it does nothing itself.
type core struct {
	set     Settings
	stand   *standing
	pool    *kv.Pool
	byID    map[actors.RequestID]*request
	waiting []*request // first come first; those that ended meanwhile are passed over
	ended   int        // how many of them
	running []*request // in order of admission; all but the finishing ones have their blocks
	voted   *step      // built for the step voted for, nil if that was a former incarnation's
	steps   []*step    // built for the flights of this incarnation, ascending
}

// step is a batch and whose rows it has.
type step struct {
	number   uint64
	batch    *actors.Batch
	requests []*request // one for each of its Rows
	prompt   []bool     // which of them feed a prompt
}

// token is an effect: a request got a token, and ended with it if finish is set.
type token struct {
	id      actors.RequestID
	sampled actors.Sampled
	finish  actors.FinishReason
	err     error
}

// newCore makes a core without requests that goes on where the engine stands.
func newCore(s Settings, at *standing) *core {
	return &core{set: s, stand: at, pool: kv.NewPool(s.KVBlocks), byID: map[actors.RequestID]*request{}}
}

// submit takes a request and reports whether it has to run; one that may generate nothing has ended already, with length.
func (c *core) submit(id actors.RequestID, prompt []int32, r *actors.Request) bool {
	limit := min(len(prompt)+min(r.MaxTokens, c.set.ModelLen), c.set.ModelLen)
	if limit <= len(prompt) {
		return false
	}
	q := &request{id: id, tokens: slices.Clip(prompt), prompt: len(prompt), limit: limit, sampling: r.Sampling, ignoreEOS: r.IgnoreEOS, stops: len(r.Stop) > 0}
	c.byID[id] = q
	c.waiting = append(c.waiting, q)
	return true
}

// end takes a request out, wherever it is, and frees its blocks. Its rows of steps that no rank has begun run as padding; those of a
// step that runs may still write the blocks: whoever gets them writes them anew in a step that is voted for later, and steps run in
// order. A batch that was voted for and is not run writes nothing. It reports whether the request was there.
func (c *core) end(id actors.RequestID) bool {
	q, ok := c.byID[id]
	if !ok {
		return false
	}
	q.ended = true
	delete(c.byID, id)
	if !q.running { // no step has its rows
		c.ended++
		if c.ended > len(c.waiting)/2 { // rarely enough that many aborts cost no more than their number
			c.waiting = slices.DeleteFunc(c.waiting, func(r *request) bool { return r.ended })
			c.ended = 0
		}
		return true
	}
	for _, s := range c.steps {
		s.batch.End(id)
	}
	if c.voted != nil {
		c.voted.batch.End(id)
	}
	q.running = false
	c.running = slices.DeleteFunc(c.running, func(r *request) bool { return r == q })
	c.free(q)
	return true
}

func (c *core) free(q *request) {
	if q.blocks != nil {
		c.pool.Free(q.blocks)
		q.blocks = nil
	}
}

// requests returns how many requests have not ended.
func (c *core) requests() int { return len(c.byID) }

// work reports whether a request needs a step that is not voted for.
func (c *core) work() bool {
	return len(c.waiting) > c.ended || slices.ContainsFunc(c.running, func(q *request) bool { return !q.finishing() })
}

// drained reports whether the engine, told to drain, has no request, and its group is parked in knowledge of the wish or will run no
// step any more.
func (c *core) drained() bool {
	s := c.stand
	return s.drain && c.requests() == 0 && (s.over != nil || s.idle() && s.wish())
}

// vote builds the batch of the step after the last plan and commits to it. It returns nil if the engine may not vote now.
func (c *core) vote() *actors.Vote {
	if !c.stand.canVote() {
		return nil
	}
	c.retire()
	c.admit()
	s := c.build()
	s.number = c.stand.at + 1
	v := &actors.Vote{
		Epoch: c.stand.epoch, Step: s.number, Engine: c.set.Engine,
		Rows: s.batch.Tokens(), Drain: c.stand.drain, Queue: c.queue(),
	}
	c.voted = s
	c.stand.vote()
	return v
}

// planned takes the plan that follows the last one. Where the step does not run, its batch is void and its rows are to be built
// again. It returns false for a plan that is not news.
func (c *core) planned(p *actors.Plan, inc uint64) bool {
	f, ok := c.stand.accept(p)
	s := c.voted
	if !ok || s == nil {
		return ok
	}
	c.voted = nil
	if f == nil {
		for i, q := range s.requests {
			q.unfeed(s.batch.Rows[i])
		}
		return true
	}
	if n := s.batch.Tokens(); n != f.rows || s.number != p.Step {
		panic(fmt.Sprintf("scheduler: invariant \"a plan has the rows that were voted\" broken: plan %d has %d, the batch of step %d %d", p.Step, f.rows, s.number, n))
	}
	f.batch, f.inc = s.batch, inc
	c.steps = append(c.steps, s)
	return true
}

// held reports whether the ranks must not have a step yet: a token of the step before, which is not known, may end a request by its
// text, and a row of that request must not run then.
func (c *core) held(number uint64) bool {
	i := slices.IndexFunc(c.steps, func(s *step) bool { return s.number == number })
	if i < 1 { // not of this incarnation, or the oldest: all before it is matched
		return false
	}
	s := c.steps[i]
	for j, q := range s.requests {
		if q.stops && !q.ended && s.batch.Rows[j].Tokens[0] == actors.Placeholder {
			return true
		}
	}
	return false
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
		if c.seated() >= c.seats() {
			break
		}
		blocks, ok := c.pool.Alloc(kv.BlocksFor(q.limit, c.set.BlockSize))
		if !ok {
			break
		}
		q.blocks, q.running = blocks, true
		q.tokens = append(make([]int32, 0, q.limit), q.tokens...) // of its own: the answer is appended
		c.running = append(c.running, q)
		taken++
	}
	clear(c.waiting[:taken])
	c.waiting = c.waiting[taken:]
}

// retire frees the blocks of requests whose last token is being chosen in a step that is planned: their KV is read for the last
// time there, before any step that is voted for from now on.
func (c *core) retire() {
	for _, q := range c.running {
		if q.finishing() {
			c.free(q)
		}
	}
}

// seats returns how many requests may run: each must fit into a step with one row.
func (c *core) seats() int { return min(c.set.MaxNumSeqs, c.set.MaxNumBatchedTokens) }

// seated returns how many requests may still need rows.
func (c *core) seated() int {
	n := 0
	for _, q := range c.running {
		if !q.finishing() {
			n++
		}
	}
	return n
}

// build makes a batch of one row for each request that generates and, with the rest of the budget, prompt chunks in order of
// admission. A row whose token is chosen by the step before has a placeholder.
func (c *core) build() *step {
	most := len(c.running)
	s := &step{batch: &actors.Batch{Rows: make([]actors.Rows, 0, most)}, requests: make([]*request, 0, most), prompt: make([]bool, 0, most)}
	budget := c.set.MaxNumBatchedTokens
	for _, q := range c.running {
		if !q.prefilling() && !q.finishing() {
			budget--
		}
	}
	for _, prompt := range []bool{false, true} { // rows of prompts stand behind the others
		for _, q := range c.running {
			if q.prefilling() != prompt {
				continue
			}
			n := 1
			switch {
			case prompt:
				n = min(q.prompt-q.fed, budget)
				budget -= n
			case q.finishing():
				n = 0
			}
			if n > 0 {
				s.batch.Rows = append(s.batch.Rows, q.rows(n, c.set.BlockSize, c.set.EOS))
				s.requests, s.prompt = append(s.requests, q), append(s.prompt, prompt)
			}
		}
	}
	return s
}

// queue returns how many waiting requests the step after the one just built could take: it has the seats and blocks of those that
// end with this one for sure.
func (c *core) queue() int {
	seats, blocks := c.seats(), c.pool.FreeBlocks()
	for _, q := range c.running {
		if q.finishing() {
			blocks += len(q.blocks)
		} else {
			seats--
		}
	}
	n := 0
	for _, q := range c.waiting {
		if q.ended {
			continue
		}
		blocks -= kv.BlocksFor(q.limit, c.set.BlockSize)
		if n == seats || blocks < 0 {
			break
		}
		n++
	}
	return n
}
