package actors

import (
	"github.com/moerack/moerack/model/sample"
)

// RequestID numbers the requests of a node, from 1. It is never used twice in a node's life.
type RequestID uint64

// Request is one prompt and how to continue it. The gateway has checked it before an engine sees it.
type Request struct {
	Text      string        // the prompt as text, used if IDs is nil
	IDs       []int32       // the prompt as token ids, taken as they are
	MaxTokens int           // most tokens to generate; 0 generates nothing
	Sampling  sample.Params // temperature, top-p, top-k, seed, logprobs
	Stop      []string      // texts that end the answer; the text before the first one is the answer
	IgnoreEOS bool          // EOS tokens are tokens like others
	Engine    *int          // data_parallel_rank: the engine that must serve it, nil for the one with the least outstanding tokens
}

// FinishReason says why a request ended. It is empty while it runs.
type FinishReason string

// The reasons, as the command line and the HTTP API spell them.
const (
	FinishStop   FinishReason = "stop"   // an EOS token or a stop string
	FinishLength FinishReason = "length" // max tokens or the model length
	FinishAbort  FinishReason = "abort"  // the client went away or the node stops
	FinishError  FinishReason = "error"  // Chunk.Err says what happened
)

// Chunk is a piece of an answer. Chunks of a request arrive in order; the last one has a FinishReason.
type Chunk struct {
	Prompt   []int32           // the prompt's token ids, in the first chunk only
	Tokens   []int32           // generated since the chunk before, EOS and stop tokens included
	Text     string            // completed by these tokens; without EOS, stop strings, unfinished characters
	Logprobs []sample.Logprobs // one for each token, if asked for
	Finish   FinishReason
	Err      error // with FinishError
	Engine   int   // the engine that serves the request
	Cached   int   // prompt tokens that came from the prefix cache
}
