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
	fed       int     // tokens whose KV is written, or will be when the steps voted for are done
	ahead     int     // tokens that the steps voted for will choose
	running   bool    // admitted, and not ended
	blocks    []int32 // nil while it waits, and once its last token is being chosen
	sampling  sample.Params
	ignoreEOS bool
	stops     bool // its text is matched: every token may turn out to be its last
	ended     bool
}

// prefilling reports whether prompt tokens are still to be fed.
func (r *request) prefilling() bool { return r.fed < r.prompt }

// length returns how many tokens it will have when the steps voted for are done, unless one of them ends it.
func (r *request) length() int { return len(r.tokens) + r.ahead }

// finishing reports whether its last token is being chosen: it needs no row more.
func (r *request) finishing() bool { return r.length() >= r.limit }

// unknown is the token of a row whose input is still being chosen.
var unknown = []int32{actors.Placeholder}

// rows makes the run of the next n tokens, with the blocks of all positions up to them, and takes them as fed. ends are the tokens
// that end a request which does not ignore them.
func (r *request) rows(n, blockSize int, ends []int32) actors.Rows {
	out := actors.Rows{
		Request: r.id, Position: r.fed, Blocks: r.blocks[:kv.BlocksFor(r.fed+n, blockSize)],
		Prompt: r.prefilling(), Sample: r.fed+n == r.length(), Sampling: r.sampling,
	}
	if r.fed < len(r.tokens) {
		out.Tokens = r.tokens[r.fed : r.fed+n : r.fed+n]
	} else {
		out.Tokens = unknown
		if !r.ignoreEOS {
			out.Ends = ends
		}
	}
	r.fed += n
	if out.Sample {
		r.ahead++
	}
	return out
}

// unfeed takes back rows that will not run.
func (r *request) unfeed(rows actors.Rows) {
	r.fed -= len(rows.Tokens)
	if rows.Sample {
		r.ahead--
	}
}
