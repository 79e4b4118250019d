package rank

import (
	"context"
	"log/slog"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/model/nn"
)

// Model is what a rank runs. All calls come from the rank's device goroutine, one at a time.
type Model interface {
	// Forward runs a batch and returns when its results are on the host. The output is valid until the next call.
	Forward(ctx context.Context, b *nn.Batch) (nn.Output, error)
	// Close frees the model's memory. The device is closed after it.
	Close()
}

// Opened is a device with a model loaded onto it.
type Opened struct {
	Model Model
	Close func() error // closes the device; called once, after Model.Close
	Facts actors.RankFacts
}

// Options describe a rank.
type Options struct {
	Rank      int
	Node      string // name of the node, for messages
	Epoch     uint64 // the only epoch whose steps it runs
	BlockSize int    // positions in a KV block
	Logger    *slog.Logger
	// Open opens the device and loads the model. It runs on the rank's OS thread, once. If it fails it has closed what it
	// had opened. It should return early when ctx ends.
	Open func(ctx context.Context) (Opened, error)
}
