package scheduler

import (
	"errors"
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
	all      []int32 // prompt and answer as if nothing stopped it, up to the model length
	limit    int     // length at which it ends for sure
	ignore   bool
	stopAt   int // tokens after which the shell stops it, as for a stop string; 0 never
	got      []int32
	fed      []int // times each position was fed
	finish   actors.FinishReason
	finishes int
}

// TestCore plays random arrivals, aborts, stops, failed steps and restarts against the core, with a plan maker that answers late and
// parks at will, and a rank that keeps its KV by slot and runs ahead of what the core knows. It checks at each turn what must always
// hold: votes in order and once, rows within the budget, every position fed once and in order, every token chosen from the request's
// own KV, blocks owned by one request, the pool whole at the end, each request ended exactly once, with its own tokens.
func TestCore(t *testing.T) {
	for seed := range uint64(400) {
		if err := playRandom(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

type world struct {
	r       *rand.Rand
	set     Settings
	stand   *standing
	core    *core
	inc     uint64
	vote    *actors.Vote // not planned yet
	stories map[actors.RequestID]*story
	last    actors.RequestID
	vocab   int
	wave    uint64
	rank    fakeRank
}

// fakeRank runs the steps that it has, in order.
type fakeRank struct {
	cache  map[int32]int32             // by slot
	chosen map[actors.RequestID]int32  // by the last step
	ran    uint64                      // number of the last step
	out    map[uint64][]actors.Sampled // what the core has not heard of
}

func playRandom(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{r: r, vocab: 2 + r.IntN(12), stories: map[actors.RequestID]*story{}, inc: 1}
	w.rank = fakeRank{cache: map[int32]int32{}, chosen: map[actors.RequestID]int32{}, out: map[uint64][]actors.Sampled{}}
	block := 1 + r.IntN(5)
	length := 4 + r.IntN(30)
	w.set = Settings{
		Engine: 3, Epoch: 1, GroupRanks: 1, ModelLen: length, MaxNumBatchedTokens: 1 + r.IntN(12), MaxNumSeqs: 1 + r.IntN(6),
		BlockSize: block, KVBlocks: kv.BlocksFor(length, block) + r.IntN(20), EOS: []int32{int32(r.IntN(w.vocab))},
	}
	w.stand = &standing{engine: 3, ranks: 1, epoch: 1}
	w.core = newCore(w.set, w.stand)
	w.stand.call(&actors.Called{Epoch: 1, Step: 1})
	for i := range 600 {
		if i < 350 && r.IntN(4) == 0 {
			w.arrive()
		}
		if err := w.act(i < 500); err != nil {
			return fmt.Errorf("after %d turns: %w", i, err)
		}
	}
	w.stand.drain = true
	for range 100000 { // until nothing is left
		if w.core.drained() {
			return w.check()
		}
		if err := w.act(false); err != nil {
			return err
		}
	}
	return fmt.Errorf("never drained: %d requests, %d flights, plan %+v", len(w.core.byID), len(w.stand.flights), w.stand.last)
}

func (w *world) arrive() {
	w.last++
	n := 1 + w.r.IntN(w.set.ModelLen-1)
	s := &story{ignore: w.r.IntN(2) == 0, fed: make([]int, w.set.ModelLen)}
	for range n {
		s.prompt = append(s.prompt, int32(w.r.IntN(w.vocab)))
	}
	most := w.r.IntN(12)
	s.all = append(slices.Clone(s.prompt), actortest.Answer(s.prompt, w.set.ModelLen-n, w.vocab)...)
	s.limit = min(n+most, w.set.ModelLen)
	s.want = s.all[n:s.limit]
	if i := slices.Index(s.want, w.set.EOS[0]); i >= 0 && !s.ignore {
		s.want = s.want[:i+1]
	}
	if w.r.IntN(4) == 0 {
		s.stopAt = 1 + w.r.IntN(4)
	}
	w.stories[w.last] = s
	r := &actors.Request{MaxTokens: most, IgnoreEOS: s.ignore}
	if s.stopAt > 0 {
		r.Stop = []string{"a string that the shell would look for"}
	}
	if !w.core.submit(w.last, s.prompt, r) {
		w.finish(s, actors.FinishLength)
	}
}

func (w *world) finish(s *story, reason actors.FinishReason) {
	s.finish, s.finishes = reason, s.finishes+1
}

// act is one turn: something happens, then the core goes on as its shell makes it.
func (w *world) act(trouble bool) error {
	if trouble && w.r.IntN(15) == 0 && w.last > 0 {
		id := 1 + actors.RequestID(w.r.IntN(int(w.last)))
		if w.core.end(id) {
			w.finish(w.stories[id], actors.FinishAbort)
		}
	}
	var err error
	switch {
	case trouble && w.r.IntN(150) == 0:
		w.restart()
	case w.vote != nil && w.r.IntN(2) == 0:
		err = w.plan(trouble)
	case w.r.IntN(2) == 0:
		err = w.run()
	default:
		err = w.land(trouble)
	}
	if err != nil {
		return err
	}
	return w.goOn()
}

// goOn votes and wakes.
func (w *world) goOn() error {
	if v := w.core.vote(); v != nil {
		switch {
		case w.vote != nil:
			return fmt.Errorf("vote for step %d while that for %d has no plan", v.Step, w.vote.Step)
		case v.Step != w.stand.at+1 || v.Engine != 3 || v.Epoch != 1 || v.Drain != w.stand.drain:
			return fmt.Errorf("vote %+v after plan %d", v, w.stand.at)
		case v.Rows == 0 && v.Queue > 0:
			return fmt.Errorf("vote %+v: no rows, though requests wait that could run", v)
		}
		w.vote = v
		return w.voted(v)
	}
	work := w.core.work()
	if w.stand.wake(work) {
		w.stand.call(&actors.Called{Epoch: 1, Wave: w.wave, Step: w.stand.at + 1})
		return w.goOn()
	}
	return nil
}

// voted checks the batch of a vote.
func (w *world) voted(v *actors.Vote) error {
	b := w.core.voted.batch
	if rows := b.Tokens(); rows != v.Rows || rows > w.set.MaxNumBatchedTokens || len(b.Rows) > w.set.MaxNumSeqs {
		return fmt.Errorf("step %d: %d rows of %d sequences, voted %d", v.Step, rows, len(b.Rows), v.Rows)
	}
	owner := map[int32]actors.RequestID{}
	for _, r := range b.Rows {
		if end, limit := r.Position+len(r.Tokens), w.stories[r.Request].limit; end > len(r.Blocks)*w.set.BlockSize || end >= limit {
			return fmt.Errorf("request %d: rows end at %d, %d blocks, limit %d: the last token is never fed", r.Request, end, len(r.Blocks), limit)
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

// plan answers the vote: others may have work, or the coordinator may park the group in spite of ours.
func (w *world) plan(trouble bool) error {
	v := w.vote
	p := &actors.Plan{
		Epoch: 1, Step: v.Step, Action: actors.Park, Members: []int{1, 3}, Rows: []int{0, v.Rows}, Drain: []bool{true, v.Drain},
		PadTo: max(1, v.Rows),
	}
	if v.Rows > 0 || v.Queue > 0 || trouble && w.r.IntN(5) == 0 {
		p.Action = actors.Run
	}
	if trouble && w.r.IntN(20) == 0 {
		p.Action = actors.Park
	}
	w.vote = nil
	if !w.core.planned(p, w.inc) || w.core.planned(p, w.inc) {
		return fmt.Errorf("plan %d is to be taken once", p.Step)
	}
	if n := len(w.stand.flights); n > 2 {
		return fmt.Errorf("%d steps in flight", n)
	}
	return nil
}

// restart ends all requests and forgets the batches, as a panic does.
func (w *world) restart() {
	for id := range w.core.byID {
		w.finish(w.stories[id], actors.FinishError)
	}
	w.inc++
	w.stand.abandon()
	w.core = newCore(w.set, w.stand)
	if w.vote != nil && w.stand.voted != w.vote.Step {
		panic("a vote is forgotten")
	}
}

// run lets the rank run the next step that it has, whatever the core knows of the one before.
func (w *world) run() error {
	i := slices.IndexFunc(w.stand.flights, func(f *flight) bool { return f.plan.Step > w.rank.ran })
	if i < 0 {
		return nil
	}
	f := w.stand.flights[i]
	if w.core.held(f.plan.Step) {
		return nil
	}
	chosen := w.rank.chosen
	if f.plan.Step != w.rank.ran+1 {
		chosen = nil
	}
	w.rank.ran, w.rank.chosen = f.plan.Step, map[actors.RequestID]int32{}
	sampled := []actors.Sampled{}
	if f.batch == nil {
		f.batch = &actors.Batch{}
	}
	ended := f.batch.Begin()
	for i, r := range f.batch.Rows {
		s, masked := w.stories[r.Request], ended != nil && ended[i]
		if masked != (s.finishes > 0) {
			return fmt.Errorf("step %d: request %d: masked %v, ended %d times before the step began", f.plan.Step, r.Request, masked, s.finishes)
		}
		if !masked {
			var err error
			if masked, err = w.feed(s, r, chosen); err != nil {
				return fmt.Errorf("step %d: %w", f.plan.Step, err)
			}
		}
		if !r.Sample {
			continue
		}
		out := actors.Sampled{Request: r.Request, Masked: masked}
		if !masked {
			out.Token = actortest.Next(w.read(r), w.vocab)
			w.rank.chosen[r.Request] = out.Token
			if end := r.Position + len(r.Tokens); end < len(s.all) && out.Token != s.all[end] {
				return fmt.Errorf("step %d: request %d: chose %d at %d, want %d: its KV is another's", f.plan.Step, r.Request, out.Token, end, s.all[end])
			}
		}
		sampled = append(sampled, out)
	}
	w.rank.out[f.plan.Step] = sampled
	return nil
}

// feed writes a run's tokens into the cache, unless the token before them has ended the request.
func (w *world) feed(s *story, r actors.Rows, chosen map[actors.RequestID]int32) (masked bool, err error) {
	for i, token := range r.Tokens {
		p := r.Position + i
		if token == actors.Placeholder {
			chose, known := chosen[r.Request]
			if !known || slices.Contains(r.Ends, chose) {
				return true, nil
			}
			token = chose
		}
		if s.fed[p]++; s.fed[p] != 1 || token != s.all[p] || p > 0 && s.fed[p-1] == 0 {
			return false, fmt.Errorf("request %d: token %d fed at position %d, %d times; want %d once, in order", r.Request, token, p, s.fed[p], s.all[p])
		}
		if p >= len(s.prompt) && !s.ignore && token == w.set.EOS[0] {
			return false, fmt.Errorf("request %d: its EOS is fed at position %d", r.Request, p)
		}
		w.rank.cache[kv.Slot(r.Blocks, p, w.set.BlockSize)] = token
	}
	return false, nil
}

// read returns the tokens of a run's sequence from the cache.
func (w *world) read(r actors.Rows) []int32 {
	tokens := make([]int32, r.Position+len(r.Tokens))
	for p := range tokens {
		tokens[p] = w.rank.cache[kv.Slot(r.Blocks, p, w.set.BlockSize)]
	}
	return tokens
}

// land tells the core of the oldest step, if the rank has run it.
func (w *world) land(trouble bool) error {
	if len(w.stand.flights) == 0 {
		return nil
	}
	f := w.stand.flights[0]
	sampled, ran := w.rank.out[f.plan.Step]
	if !ran {
		return nil
	}
	delete(w.rank.out, f.plan.Step)
	if trouble && w.r.IntN(25) == 0 && f.inc == w.inc {
		w.stand.drop(f)
		ended, err := w.core.failed(f.plan.Step)
		for _, id := range ended {
			w.finish(w.stories[id], actors.FinishError)
		}
		return err
	}
	if !f.answer(0, &actors.StepDone{Sampled: sampled}) || f.answer(0, &actors.StepDone{}) || w.stand.landed() != f {
		return errors.New("an answer is to be taken once")
	}
	if f.inc != w.inc {
		return nil
	}
	o, err := w.core.done(f.plan.Step, f.sampled)
	if o.rows > f.rows || o.prompt > o.rows || o.generated != len(o.tokens) {
		return fmt.Errorf("step %d of %d rows: %+v", f.plan.Step, f.rows, o)
	}
	for _, k := range o.tokens {
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
