// Command embed shows how a Go program serves a model inside itself: it starts a node, hands it one prompt, and prints the
// answer as it is made. It has no settings beyond its three arguments; moectl is the program for that.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1) //nolint:forbidigo // a main ends its own process
	}
}

// run continues a prompt: arguments are the model's directory, the prompt, and the most tokens of the answer.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("usage: embed DIR PROMPT MAX_TOKENS")
	}
	dir, prompt := args[0], args[1]
	maxTokens, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("MAX_TOKENS %q: must be a whole number", args[2])
	}

	// The model's files: what it is, how it reads text, and its weights, which are mapped and read in place.
	cfg, err := config.Load(dir)
	if err != nil {
		return err
	}
	tokenizer, err := token.Load(dir)
	if err != nil {
		return err
	}
	checkpoint, err := weights.Open(dir)
	if err != nil {
		return err
	}

	// The bus that carries votes and plans: a NATS server inside this process, which opens no port.
	bus, err := natsbus.Start(ctx, natsbus.Options{})
	if err != nil {
		return err
	}

	// The node: the caller chooses the backend, here the host's processor.
	options := node.Defaults()
	options.Bus = bus
	options.Open = func(index int) (hal.Device, error) { return cpu.Open(cpu.Options{Index: index, Devices: 1}) }
	options.Config, options.Checkpoint, options.Tokenizer = cfg, checkpoint, tokenizer
	n, err := node.Start(ctx, options)
	if err != nil {
		return errors.Join(err, bus.Close(context.WithoutCancel(ctx)))
	}
	err = generate(ctx, n, out, actors.Request{
		Text:      prompt,
		MaxTokens: maxTokens,
		Sampling:  sample.Params{Temperature: 0, TopP: 1, Logprobs: sample.NoLogprobs},
	})

	// Close waits for the step in flight, with a context of its own: the other may have ended.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if closeErr := errors.Join(n.Close(closing), bus.Close(closing)); closeErr != nil {
		return errors.Join(err, closeErr) // the weights stay mapped: someone may still read them
	}
	return errors.Join(err, checkpoint.Close())
}

// generate prints an answer as it is made. When ctx ends, so does the request, with what it has.
func generate(ctx context.Context, n *node.Node, out io.Writer, request actors.Request) error {
	stream, err := n.Submit(ctx, request)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, stream.Cancel)
	defer stop()
	for {
		chunk, err := stream.Recv(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, chunk.Text); err != nil {
			stream.Cancel()
			return err
		}
		switch chunk.Finish {
		case "":
		case actors.FinishError:
			return chunk.Err
		default:
			_, err := fmt.Fprintf(out, "\n[%s]\n", chunk.Finish)
			return err
		}
	}
}
