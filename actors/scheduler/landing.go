package scheduler

import (
	"fmt"
	"slices"

	"github.com/moerack/moerack/actors"
)

// outcome is what a step that ran has brought.
type outcome struct {
	tokens    []token // of requests that had not ended
	rows      int     // real ones: their requests had not ended before the step's result
	prompt    int     // prompt tokens among them
	generated int     // tokens among them that are no errors
}

// done takes what the oldest step of this incarnation gave: the tokens in the order of its rows that sample. Requests that ended
// meanwhile get nothing. With an error nothing has changed.
func (c *core) done(number uint64, sampled []actors.Sampled) (outcome, error) {
	s, err := c.oldest(number)
	if err != nil {
		return outcome{}, err
	}
	sampling := make([]*request, 0, len(sampled))
	for i, q := range s.requests {
		if s.batch.Rows[i].Sample {
			sampling = append(sampling, q)
		}
	}
	if !slices.EqualFunc(sampling, sampled, func(q *request, s actors.Sampled) bool { return q.id == s.Request }) {
		return outcome{}, fmt.Errorf("%d tokens for %d requests, or for others: rank and scheduler disagree on the batch", len(sampled), len(sampling))
	}
	for i, q := range sampling {
		if sampled[i].Masked && !q.ended {
			return outcome{}, fmt.Errorf("request %d ran as padding and has not ended: rank and scheduler disagree on its last token", q.id)
		}
	}
	out := outcome{tokens: make([]token, 0, len(sampling))}
	for i, q := range s.requests {
		if q.ended {
			continue
		}
		n := len(s.batch.Rows[i].Tokens)
		out.rows += n
		if s.prompt[i] {
			out.prompt += n
		}
	}
	for i, q := range sampling {
		q.ahead--
		if q.ended {
			continue
		}
		t := c.token(q, sampled[i])
		if t.err == nil {
			out.generated++
		}
		out.tokens = append(out.tokens, t)
	}
	c.steps = c.steps[1:]
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

// failed takes that a step of this incarnation gave nothing, and returns the requests that end with it.
func (c *core) failed(number uint64) ([]actors.RequestID, error) {
	i := slices.IndexFunc(c.steps, func(s *step) bool { return s.number == number })
	if i < 0 {
		return nil, fmt.Errorf("step %d failed, which is none of %d in flight", number, len(c.steps))
	}
	var ids []actors.RequestID
	for _, q := range c.steps[i].requests {
		if !q.ended {
			ids = append(ids, q.id)
			c.end(q.id)
		}
	}
	c.steps = slices.Delete(c.steps, i, i+1)
	return ids, nil
}

func (c *core) oldest(number uint64) (*step, error) {
	if len(c.steps) == 0 || c.steps[0].number != number {
		return nil, fmt.Errorf("it is not the oldest of %d steps in flight", len(c.steps))
	}
	return c.steps[0], nil
}
