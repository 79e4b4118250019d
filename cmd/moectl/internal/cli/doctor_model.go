package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/moerack/moerack/actors/node"
	"github.com/moerack/moerack/model/chat"
	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/nn"
	"github.com/moerack/moerack/model/token"
	"github.com/moerack/moerack/model/weights"
	"github.com/moerack/moerack/topology"
)

// mostNames bounds how many tensors one finding lists.
const mostNames = 5

// model adds the checks of a model's directory. A check that needs what an earlier one found broken is left out.
func (r *report) model(ctx context.Context, dir string, backend Backend) {
	cfg, err := modelconfig.Load(dir)
	if err != nil {
		r.addf(broken, "config", "%v", err)
	} else {
		r.config(cfg)
	}
	r.texts(dir)
	checkpoint, err := weights.Open(dir)
	if err != nil {
		r.addf(broken, "weights", "%v", err)
		return
	}
	r.addf(good, "weights", "%d tensors", len(checkpoint.Names()))
	if cfg != nil {
		r.layout(ctx, cfg, checkpoint, backend)
	}
	r.numbers(func() (weights.Scan, error) { return checkpoint.ScanNonFinite(ctx) })
	if err := checkpoint.Close(); err != nil {
		r.addf(broken, "weights", "close: %v", err)
	}
}

func (r *report) config(c *modelconfig.Config) {
	form := "plain weights"
	switch q := c.Quantization; {
	case q.FP8():
		form = fmt.Sprintf("fp8 %dx%d blocks", q.BlockRows, q.BlockCols)
	case q.W8A8:
		form = "int8 weights (w8a8)"
	}
	r.addf(good, "config", "%s, %d layers, hidden %d, %d experts, vocabulary %d, %d positions, %s", c.Architecture, c.NumLayers, c.HiddenSize, c.NumRoutedExperts, c.VocabSize, c.MaxPositionEmbeddings, form)
	for _, warning := range c.Warnings {
		r.addf(notice, "config", "%s", warning)
	}
}

// texts checks tokenizer and chat template. A model without them runs on token ids and plain prompts.
func (r *report) texts(dir string) {
	if t, err := token.Load(dir); err == nil {
		r.addf(good, "tokenizer", "%d tokens", t.VocabSize())
	} else {
		r.addf(unless(errors.Is(err, token.ErrNoTokenizer)), "tokenizer", "%v", err)
	}
	if _, err := chat.Load(dir); err == nil {
		r.addf(good, "chat template", "compiles")
	} else {
		r.addf(unless(errors.Is(err, chat.ErrNoTemplate)), "chat template", "%v", err)
	}
}

// unless returns notice for what a model may lack, and broken for all else.
func unless(mayLack bool) status {
	if mayLack {
		return notice
	}
	return broken
}

// layout loads the model as a rank would, with room for next to nothing, so that every tensor is asked for by name and shape.
func (r *report) layout(ctx context.Context, cfg *modelconfig.Config, checkpoint *weights.Checkpoint, backend Backend) {
	device, err := backend.Open(0, Compute{})
	if err != nil {
		r.addf(broken, "tensors", "%v", err)
		return
	}
	blockSize := min(node.Defaults().BlockSize, cfg.MaxPositionEmbeddings)
	reader := checkpoint.NewReader()
	limits := nn.Limits{Rows: 1, Samples: 1, Sequences: 1, ModelLen: blockSize, Blocks: 1, BlockSize: blockSize}
	alone := topology.Layout{DataParallel: 1, TensorParallel: 1}.Place(0) // the rank that needs every tensor
	var model *deepseek.Model
	err = mapped(func() (err error) { model, err = deepseek.Load(ctx, device, cfg, alone, reader, limits); return err })
	if err != nil {
		r.addf(broken, "tensors", "%v", err)
	} else {
		model.Close()
		r.addf(good, "tensors", "all there with their shapes, %s", size(reader.Bytes()))
		if unused := checkpoint.Unused(cfg.NumLayers); len(unused) > 0 {
			r.addf(notice, "tensors", "%d that no layer uses: %s", len(unused), someOf(unused))
		}
		if n, bytes := checkpoint.Copied(); n > 0 {
			r.addf(notice, "tensors", "%d lie misaligned in their files and are copied to memory, %s: write the files anew with aligned data", n, size(bytes))
		}
	}
	if err := device.Close(); err != nil {
		r.addf(broken, "tensors", "close device: %v", err)
	}
}

// numbers reports NaN and infinities in all tensors, for which it runs look.
func (r *report) numbers(look func() (weights.Scan, error)) {
	var scan weights.Scan
	err := mapped(func() (err error) { scan, err = look(); return err })
	for _, t := range scan.NonFinite {
		r.addf(broken, "numbers", "%s: tensor %q holds %d NaN and %d infinite values, the first at index %d", t.File, t.Name, t.NaN, t.Inf, t.First)
	}
	switch {
	case err != nil:
		r.addf(broken, "numbers", "%v", err)
	case len(scan.NonFinite) == 0:
		r.addf(good, "numbers", "no NaN, no infinity in %d tensors, %s", scan.Tensors, size(scan.Bytes))
	}
}

// mapped runs look, which reads mapped files on its own goroutine. Reading what is no longer there is an error then, and does not
// end the process.
func mapped(look func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface {
			error
			Addr() uintptr
		}: // as package debug says of such faults
			err = fmt.Errorf("memory fault: was a weight file changed while it was mapped? (%w)", r)
		default:
			panic(r)
		}
	}()
	return look()
}

// someOf lists the first names.
func someOf(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}
