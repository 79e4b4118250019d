package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/model/sample"
)

// stdinWindow bounds how many requests of standard input may be ahead of the answer that is written next.
const stdinWindow = 256

// noEngine is the engine of an answer that none served.
const noEngine = -1

// answer is what became of one prompt. All but the stream is filled in when the request has ended.
type answer struct {
	index    int
	where    string
	prompt   []int32
	stream   *gateway.Stream // nil if no engine got the request
	release  func() bool     // with stream: ends its tie to the context
	tokens   []int32
	text     string
	finish   actors.FinishReason
	logprobs []sample.Logprobs
	wanted   bool // log-probabilities were asked for
	engine   int
	cached   int
	refused  bool // the prompt was faulty
	failed   bool // the request ended with an error
}

// answer runs all prompts of the source and writes their answers in order. Requests are handed over as they come; one
// reader follows their streams one after the other, until late at most.
func (g *generation) answer(ctx, late context.Context, n *node.Node) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if g.model.tokenizer == nil {
		g.log.Warn("the model has no tokenizer: texts are empty, -o json has the token ids")
	}
	pending := g.handOver(ctx, n)
	written, err := g.write(late, pending)
	for _, sum := range g.failures.sums() {
		g.complain(sum)
	}
	if err != nil {
		cancel()
		for range pending { // requests already handed over end by ctx
		}
		return fmt.Errorf("standard output: %w", err)
	}
	switch {
	case interrupted(ctx):
		return errInterrupted
	case g.failed:
		return reportedError{exitFailure}
	case g.refused:
		return reportedError{exitUsage}
	case written == 0:
		return usagef("standard input: no prompt in it")
	}
	return nil
}

// handOver submits the prompts of the source, no more of them ahead of the reader than the window holds. All that comes must be
// read, also after ctx has ended; then the channel is closed.
func (g *generation) handOver(ctx context.Context, n *node.Node) <-chan *answer {
	pending := make(chan *answer, max(stdinWindow, len(g.source.list)))
	go func() { // ends when the prompts do, or ctx
		defer close(pending)
		index := 0
		for e := range g.source.entries(ctx) {
			pending <- g.submit(ctx, n, index, e)
			index++
		}
	}()
	return pending
}

// submit hands one prompt to the node. A prompt that gets no stream is an answer already.
func (g *generation) submit(ctx context.Context, n *node.Node, index int, e entry) *answer {
	a := &answer{index: index, where: e.where, prompt: e.ids, engine: noEngine}
	request := e.request(index, g.settings.Settings)
	err := e.err
	if err == nil {
		a.wanted = request.Sampling.Logprobs >= 0
	}
	if err == nil && a.prompt == nil { // a line of standard input: nobody has checked it
		if a.prompt, err = gateway.Check(request, n.Limits()); err != nil {
			err = e.fault(err)
		}
	}
	if err != nil {
		a.finish, a.refused = actors.FinishError, true
		g.complain(err)
		return a
	}
	request.IDs = a.prompt
	a.stream, err = n.Submit(ctx, request)
	switch {
	case err == nil:
		a.release = context.AfterFunc(ctx, a.stream.Cancel)
	case ctx.Err() != nil:
		a.finish = actors.FinishAbort
	default:
		a.fail(g, err)
	}
	return a
}

// fail ends an answer with an error.
func (a *answer) fail(g *generation, err error) {
	a.finish, a.failed = actors.FinishError, true
	if news := g.failures.add(a.where, err); news != nil {
		g.complain(news)
	}
}

// collect follows the answer's stream to its end, until late at most, and gives each text as it comes. An error is one of text.
func (a *answer) collect(late context.Context, g *generation, text func(string) error) error {
	defer func() {
		g.failed, g.refused = g.failed || a.failed, g.refused || a.refused
		if a.release != nil {
			a.release()
		}
	}()
	for a.stream != nil && a.finish == "" {
		// Not the run's context: after an interrupt the request still ends, with what it has.
		chunk, err := a.stream.Recv(late)
		switch {
		case err == nil:
		case late.Err() != nil:
			a.finish = actors.FinishAbort
			return nil
		case errors.Is(err, io.EOF):
			a.fail(g, errors.New("the answer ended without a reason"))
			return nil
		default:
			a.fail(g, err)
			return nil
		}
		a.take(chunk)
		if chunk.Finish == actors.FinishError {
			a.fail(g, chunk.Err)
		}
		if err := text(chunk.Text); err != nil {
			return err
		}
	}
	return nil
}

// take adds a chunk.
func (a *answer) take(c actors.Chunk) {
	a.tokens = append(a.tokens, c.Tokens...)
	a.text += c.Text
	a.logprobs = append(a.logprobs, c.Logprobs...)
	a.finish, a.engine, a.cached = c.Finish, c.Engine, max(a.cached, c.Cached)
}
