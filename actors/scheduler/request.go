package scheduler

import (
	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/kv"
	"github.com/moerack/moerack/model/sample"
)

// request is one the core knows: it waits or runs.
type request struct {
	id        actors.RequestID
	tokens    []int32 // prompt and answer; the caller's prompt while it waits, then grown by append only, so that rows may point into it
	prompt    int     // length of the prompt
	limit     int     // length at which it ends
	fed       int     // tokens whose KV is written, or will be when the step in flight is done
	blocks    []int32 // nil while it waits
	sampling  sample.Params
	ignoreEOS bool
	ended     bool
}

// prefilling reports whether prompt tokens are still to be fed.
func (r *request) prefilling() bool { return r.fed < r.prompt }

// rows makes the run of the next n tokens, with the blocks of all positions up to them.
func (r *request) rows(n, blockSize int) actors.Rows {
	return actors.Rows{
		Request: r.id, Tokens: r.tokens[r.fed : r.fed+n : r.fed+n], Position: r.fed,
		Blocks: r.blocks[:kv.BlocksFor(r.fed+n, blockSize)],
		Sample: r.fed+n == len(r.tokens), Sampling: r.sampling,
	}
}
