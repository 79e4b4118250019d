package rank

import (
	"context"
	"log/slog"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

// Model is what a rank runs. All calls come from the rank's device goroutine, one at a time.
type Model interface {
	// Join gives the model the communicators of an epoch: the engine's ranks, and those that share the experts. Nil: there is
	// none. They are the caller's; what was given before is not used any more.
	Join(tp, ep hal.Comm)
	// Forward runs a batch and returns when its results are on the host. The output is valid until the next call. Logits come
	// on the engine's first rank only. It writes where it is to the Progress of the rank's facts.
	Forward(ctx context.Context, b *nn.Batch, s nn.Step) (nn.Output, error)
	// Share ends a step whose Forward succeeded: the engine's first rank gives the token chosen for each sample of the batch,
	// Placeholder where there is none; on the others it fills tokens with them. // (samples)
	Share(ctx context.Context, tokens []int32) error
	// Close frees the model's memory. The device is closed after it.
	Close()
}

// Opened is a device with a model loaded onto it.
type Opened struct {
	Model Model
	// Join makes the device a member of a group, as hal.Device does.
	Join  func(ctx context.Context, g hal.Group, r hal.Rendezvous) (hal.Comm, error)
	Close func() error // closes the device; called once, after the communicators and Model.Close
	Facts actors.RankFacts

	// Reducer passes over vocabularies where tokens are chosen; nil: plain loops.
	Reducer hal.Reducer
}

// Options describe a rank.
type Options struct {
	Rank      int    // global
	TPRank    int    // place in its engine; the first samples
	Node      string // name of the node, for messages
	BlockSize int    // positions in a KV block
	Logger    *slog.Logger
	// Open opens the device and loads the model. It runs on the rank's OS thread, once. If it fails it has closed what it
	// had opened. It should return early when ctx ends.
	Open func(ctx context.Context) (Opened, error)
}
