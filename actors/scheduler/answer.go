package scheduler

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/sample"
)

// answer is a request's text side: whom to tell, and what its tokens say so far.
type answer struct {
	client *actor.PID
	text   func(id int32) string // nil without a tokenizer
	stops  *sample.StopMatcher
}

// take turns a token into the chunk that tells of it. A stop string overrules any other end.
func (a *answer) take(t token) actors.Chunk {
	c := actors.Chunk{Finish: t.finish, Err: t.err}
	if t.finish == actors.FinishError {
		c.Text = a.stops.Flush()
		return c
	}
	c.Tokens = []int32{t.sampled.Token}
	if lp := t.sampled.Logprobs; lp != nil {
		c.Logprobs = []sample.Logprobs{*lp}
	}
	eos := t.finish == actors.FinishStop
	if a.text != nil && !eos {
		var stopped bool
		if c.Text, stopped = a.stops.Push(a.text(t.sampled.Token)); stopped {
			c.Finish = actors.FinishStop
			return c
		}
	}
	if c.Finish != "" {
		c.Text += a.stops.Flush()
	}
	return c
}
