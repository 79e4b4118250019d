package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	modelconfig "github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/deepseek"
	"github.com/moerack/moerack/model/weights"
)

// quantizer writes a quantized checkpoint.
type quantizer struct {
	log        *slog.Logger
	checkpoint *weights.Checkpoint
	writer     *weights.Writer
	tasks      []quantizeTask
	entries    []weights.Entry
	used       map[string]bool // tensors of the original
	result     quantized
}

// quantizeTask is a tensor to be written: converted, or as it is.
type quantizeTask struct {
	name       string // in the new checkpoint
	conversion *weights.Conversion
	stored     weights.Tensor
}

// scaleOf is the name of the scales of a matrix in the new checkpoint.
func scaleOf(name string) string { return name + "_scale" }

const (
	quantizeChunk = 16 << 20 // bytes of a result that are held at a time
	progressEvery = 5 * time.Second
	mostBeside    = 64 << 20 // bytes of a file that is copied
)

// plan looks every tensor up, so that all that is missing or misshapen is known, at once, before anything is written.
func (q *quantizer) plan(pieces []deepseek.Piece) error {
	q.used = map[string]bool{}
	var faults []error
	for _, p := range pieces {
		var err error
		switch {
		case p.Vector:
			err = q.planVector(p)
		case p.Form == weights.Stored:
			err = q.planStored(p)
		default:
			err = q.planConversion(p)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	if more := len(faults) - mostNames; more > 0 {
		faults = append(faults[:mostNames:mostNames], fmt.Errorf("and %d more faults of the same checkpoint", more))
	}
	q.result.Tensors = len(q.entries)
	return errors.Join(faults...)
}

func (q *quantizer) planVector(p deepseek.Piece) error {
	t, err := q.checkpoint.Tensor(p.Name, weights.Want{Shape: []int{p.In}, DTypes: []weights.DType{weights.F32, weights.BF16, weights.F16}})
	if err != nil {
		return err
	}
	q.keep(p.To, t)
	return nil
}

func (q *quantizer) planStored(p deepseek.Piece) error {
	l, err := q.checkpoint.NewReader().Linear(p.Matrix)
	if err != nil {
		return err
	}
	q.keep(p.To, l.Weight)
	if l.Scale != nil {
		q.keep(l.Scale.Name, *l.Scale)
	}
	return nil
}

// keep plans a tensor as it is.
func (q *quantizer) keep(to string, t weights.Tensor) {
	q.tasks = append(q.tasks, quantizeTask{name: to, stored: t})
	q.entries = append(q.entries, weights.Entry{Name: to, DType: t.DType, Shape: t.Shape})
	q.use(t)
}

// use notes a tensor of the original, and counts it when it is the first time.
func (q *quantizer) use(t weights.Tensor) {
	if !q.used[t.Name] {
		q.used[t.Name] = true
		q.result.SourceBytes += int64(len(t.Data))
	}
}

func (q *quantizer) planConversion(p deepseek.Piece) error {
	v, err := q.checkpoint.NewConversion(p.Matrix)
	if err != nil {
		return err
	}
	q.tasks = append(q.tasks, quantizeTask{name: p.To, conversion: v})
	q.entries = append(q.entries, weights.Entry{Name: p.To, DType: v.DType(), Shape: []int{v.Rows(), p.In}})
	if v.DType() == weights.I8 {
		q.entries = append(q.entries, weights.Entry{Name: scaleOf(p.To), DType: weights.F32, Shape: []int{v.Rows(), 1}})
		q.result.Int8++
	}
	for _, t := range v.Sources() {
		q.use(t)
	}
	return nil
}

// warnDropped names what the new checkpoint will not have.
func (q *quantizer) warnDropped() {
	var dropped []string
	for _, name := range q.checkpoint.Names() {
		if !q.used[name] && !strings.HasSuffix(name, ".rotary_emb.inv_freq") {
			dropped = append(dropped, name)
		}
	}
	if len(dropped) > 0 {
		q.log.Warn("tensors that no layer uses are left out, those of MTP modules among them", "tensors", len(dropped), "names", someOf(dropped))
	}
}

// write writes all tensors.
func (q *quantizer) write(ctx context.Context) error {
	last, done := time.Now(), int64(0)
	buf := make([]byte, 0, quantizeChunk)
	for _, t := range q.tasks {
		progress := func(bytes int) error {
			done += int64(bytes)
			if now := time.Now(); now.Sub(last) >= progressEvery {
				last = now
				q.log.Info("quantizing", "tensor", t.name, "written", size(done), "of", size(q.writer.Bytes()))
			}
			return context.Cause(ctx)
		}
		var err error
		if t.conversion == nil {
			err = q.writeStored(t, progress)
		} else {
			err = q.writeConverted(t, buf, progress)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (q *quantizer) writeStored(t quantizeTask, progress func(int) error) error {
	for at := 0; at < len(t.stored.Data); at += quantizeChunk {
		piece := t.stored.Data[at:min(at+quantizeChunk, len(t.stored.Data))]
		if err := q.writer.WriteAt(t.name, piece, int64(at)); err != nil {
			return err
		}
		if err := progress(len(piece)); err != nil {
			return err
		}
	}
	return nil
}

func (q *quantizer) writeConverted(t quantizeTask, buf []byte, progress func(int) error) error {
	v := t.conversion
	rows, width := v.Rows(), v.RowBytes()
	var scales []byte
	if v.DType() == weights.I8 {
		scales = make([]byte, 4*rows)
	}
	each := max(1, quantizeChunk/max(1, width))
	for from := 0; from < rows; from += each {
		to := min(from+each, rows)
		if need := (to - from) * width; cap(buf) < need {
			buf = make([]byte, need)
		}
		piece, part := buf[:(to-from)*width], scales
		if scales != nil {
			part = scales[4*from : 4*to]
		}
		v.Run(from, to, piece, part)
		if err := q.writer.WriteAt(t.name, piece, int64(from)*int64(width)); err != nil {
			return err
		}
		if err := progress(len(piece)); err != nil {
			return err
		}
	}
	if scales == nil {
		return nil
	}
	for i := range rows {
		if s := math.Float32frombits(binary.LittleEndian.Uint32(scales[4*i:])); s != s {
			return fmt.Errorf("tensor %q: row %d holds a NaN or an infinity, which int8 cannot: the checkpoint is broken (moectl doctor --model looks for more)", t.name, i)
		}
	}
	return q.writer.WriteAt(scaleOf(t.name), scales, 0)
}

// copyFiles brings the files that go with the weights, and the configuration last: with it the directory is a model's.
func (q *quantizer) copyFiles(dir string) error {
	names, err := besides(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		err = q.writer.AddFile(name, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	document, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return err
	}
	if document, err = modelconfig.ToW8A8(document); err != nil {
		return err
	}
	return q.writer.AddFile("config.json", bytes.NewReader(document))
}

// weightFile reports whether a file of a model's directory holds weights or says how they are stored.
func weightFile(name string) bool {
	if name == "config.json" || strings.HasSuffix(name, ".safetensors.index.json") || strings.HasSuffix(name, ".bin.index.json") {
		return true
	}
	switch filepath.Ext(name) {
	case ".safetensors", ".bin", ".gguf", ".pt", ".pth", ".ckpt", ".onnx", ".partial":
		return true
	}
	return false
}
