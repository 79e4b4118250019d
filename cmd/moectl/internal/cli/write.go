package cli

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/moerack/moerack/model/sample"
)

// write writes the answers that come, in their order, each followed until late at most, and returns how many. An error is one of
// standard output.
func (g *generation) write(late context.Context, pending <-chan *answer) (int, error) {
	if g.output == outputJSON {
		return g.writeObjects(late, pending)
	}
	return g.writeTexts(late, pending)
}

// object is an answer as JSON. All keys are always there.
type object struct {
	Index          int            `json:"index"`
	PromptTokenIDs []int32        `json:"prompt_token_ids"`
	TokenIDs       []int32        `json:"token_ids"`
	Text           string         `json:"text"`
	FinishReason   string         `json:"finish_reason"`
	Logprobs       []tokenLogprob `json:"logprobs"` // null unless asked for
	Engine         int            `json:"engine"`   // −1 if none served the prompt
	CachedTokens   int            `json:"cached_tokens"`
}

// tokenLogprob is a generated token, its log-probability, and the most probable tokens in its place.
type tokenLogprob struct {
	logprob
	Top []logprob `json:"top"`
}

// logprob is a token and its log-probability; float32 is written as the shortest text that reads back to it.
type logprob struct {
	TokenID int32   `json:"token_id"`
	Logprob float32 `json:"logprob"`
}

func (g *generation) writeObjects(late context.Context, pending <-chan *answer) (int, error) {
	written := 0
	for a := range pending {
		if err := a.collect(late, g, func(string) error { return nil }); err != nil {
			return written, err
		}
		if err := writeJSON(g.Stdout, a.object()); err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}

func (a *answer) object() object {
	o := object{
		Index: a.index, PromptTokenIDs: append([]int32{}, a.prompt...), TokenIDs: append([]int32{}, a.tokens...), Text: a.text,
		FinishReason: string(a.finish), Engine: a.engine, CachedTokens: a.cached,
	}
	if a.wanted {
		o.Logprobs = make([]tokenLogprob, len(a.logprobs))
		for i, l := range a.logprobs {
			top := make([]logprob, len(l.Top))
			for j, t := range l.Top {
				top[j] = inJSON(t)
			}
			o.Logprobs[i] = tokenLogprob{logprob: inJSON(l.Logprob), Top: top}
		}
	}
	return o
}

// inJSON keeps the logarithm of a probability that float32 rounds to 0 finite: JSON has no infinities.
func inJSON(l sample.Logprob) logprob {
	return logprob{TokenID: l.Token, Logprob: max(l.Logprob, -math.MaxFloat32)}
}

// writeTexts streams the only answer, or writes several whole, each under its number.
func (g *generation) writeTexts(late context.Context, pending <-chan *answer) (int, error) {
	first, ok := <-pending
	if !ok {
		return 0, nil
	}
	several := len(g.source.list) > 1
	var second *answer
	if g.source.lines != nil {
		// Whether there is a second line decides how the first answer looks. It is being made meanwhile.
		second, several = <-pending
	}
	if !several {
		return 1, g.writeOnly(late, first)
	}
	written := 0
	for a := first; a != nil; written++ {
		if err := g.writeNumbered(late, a); err != nil {
			return written, err
		}
		if a, second = second, nil; a == nil {
			a = <-pending // nil when it is closed
		}
	}
	return written, nil
}

// writeOnly writes an answer while it is made. A refused prompt has none.
func (g *generation) writeOnly(late context.Context, a *answer) error {
	if err := a.collect(late, g, g.writeText); err != nil || a.refused {
		return err
	}
	return g.writeText("\n")
}

func (g *generation) writeText(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(g.Stdout, text)
	return err
}

// writeNumbered writes an answer under its number when it is whole.
func (g *generation) writeNumbered(late context.Context, a *answer) error {
	if err := a.collect(late, g, func(string) error { return nil }); err != nil {
		return err
	}
	return g.writeText(fmt.Sprintf("--- %d\n%s\n", a.index, a.text))
}
