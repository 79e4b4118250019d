// Command dp_offline answers a batch of prompts with several data-parallel engines that share their experts. Every engine gets
// other prompts, and every prompt another number of tokens; the engines step together until the last one has finished. Then one
// engine alone answers all prompts once more, and the program fails if any token differs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/messages/bus/natsbus"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/model/token"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/topology"
)

// prompts are dealt out to the engines in turn.
var prompts = []string{
	"KING HENRY:", "What is the city but the people?", "O, ", "Now is the winter of our discontent",
	"To be", "Good morrow, cousin.", "A horse! a horse!", "ROMEO:\nBut soft, what light",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dp_offline:", err)
		os.Exit(1) //nolint:forbidigo // a main ends its own process
	}
}

// run answers the prompts with N engines and with one, and compares: arguments are the model's directory and N.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: dp_offline DIR ENGINES")
	}
	engines, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("ENGINES %q: must be a whole number", args[1])
	}
	model, err := open(args[0])
	if err != nil {
		return err
	}
	shared, stats, err := model.answer(ctx, topology.Layout{DataParallel: engines, TensorParallel: 1, ExpertParallel: true})
	if err != nil {
		return err
	}
	alone, _, err := model.answer(ctx, topology.Layout{DataParallel: 1, TensorParallel: 1})
	if err != nil {
		return err
	}
	for i, tokens := range shared {
		if !slices.Equal(tokens, alone[i]) {
			return fmt.Errorf("prompt %d: %d engines answer %v, one answers %v", i, engines, tokens, alone[i])
		}
		fmt.Fprintf(out, "engine %d, prompt %d: %2d tokens, the same as from one engine\n", i%engines, i, len(tokens))
	}
	for _, e := range stats.Engines {
		fmt.Fprintf(out, "engine %d: %d steps, %d of them without a row of its own, %d rows, %d padded\n", e.Engine, e.Steps, e.DummySteps, e.RealTokens, e.PaddedTokens)
	}
	return model.weights.Close()
}

// files are a model's files: what it is, how it reads text, and its weights, mapped and read in place by all ranks.
type files struct {
	config    *config.Config
	tokenizer *token.Tokenizer
	weights   *weights.Checkpoint
}

func open(dir string) (f files, err error) {
	if f.config, err = config.Load(dir); err != nil {
		return f, err
	}
	if f.tokenizer, err = token.Load(dir); err != nil {
		return f, err
	}
	f.weights, err = weights.Open(dir)
	return f, err
}

// answer runs all prompts on a node of that layout, prompt i on engine i modulo their number, for 4, 9, 14 … tokens.
func (f files) answer(ctx context.Context, layout topology.Layout) (tokens [][]int32, stats actors.Stats, err error) {
	// The bus between the actors of the layout: a NATS server inside this process, which opens no port.
	bus, err := natsbus.Start(ctx, natsbus.Options{})
	if err != nil {
		return nil, stats, err
	}
	options := node.Defaults()
	options.Bus, options.Layout = bus, layout
	options.Open = func(index int) (hal.Device, error) {
		return cpu.Open(cpu.Options{Index: index, Devices: layout.World()})
	}
	options.Config, options.Tokenizer, options.Checkpoint = f.config, f.tokenizer, f.weights
	n, err := node.Start(ctx, options)
	if err != nil {
		return nil, stats, errors.Join(err, bus.Close(ctx))
	}
	tokens, err = submit(ctx, n, layout.DataParallel)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, n.Close(closing), bus.Close(closing))
	return tokens, n.Stats(), err
}

// submit hands over all prompts at once and then reads the answers.
func submit(ctx context.Context, n *node.Node, engines int) ([][]int32, error) {
	tokens := make([][]int32, len(prompts))
	read := make([]func() error, len(prompts))
	for i, text := range prompts {
		engine := i % engines
		stream, err := n.Submit(ctx, actors.Request{
			Text: text, MaxTokens: 4 + 5*i, IgnoreEOS: true, Engine: &engine,
			Sampling: sample.Params{Temperature: 0.8, TopP: 1, Seed: uint64(i), Logprobs: sample.NoLogprobs},
		})
		if err != nil {
			return nil, err
		}
		read[i] = func() error {
			for {
				chunk, err := stream.Recv(ctx)
				if err != nil {
					return err
				}
				tokens[i] = append(tokens[i], chunk.Tokens...)
				if chunk.Finish != "" {
					return chunk.Err
				}
			}
		}
	}
	for _, f := range read {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}
