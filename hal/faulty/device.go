package faulty

import (
	"context"

	"github.com/moerack/moerack/hal"
)

// Wrap returns a device whose calls pass through in. Tensors are those of dev; streams and communicators come wrapped. Describe, Pulse, Err,
// Group and Abort always pass: they wait for nothing and may be called by anyone. With a nil in there are no rules.
func Wrap(dev hal.Device, in *Injector) hal.Device {
	if in == nil {
		in = &Injector{}
	}
	return &device{Device: dev, gate: gate{in: in, name: dev.Describe().Name}}
}

// gate asks the injector under a device's name.
type gate struct {
	in   *Injector
	name string
}

func (g gate) call(op string) error { return g.in.call(context.Background(), g.name, op) }

type device struct {
	hal.Device
	gate
}

// Memory may be told to fail.
func (d *device) Memory() (hal.Memory, error) {
	if err := d.call("Memory"); err != nil {
		return hal.Memory{}, err
	}
	return d.Device.Memory()
}

// Alloc may be told to fail.
func (d *device) Alloc(dtype hal.DType, rows, cols int) (hal.Tensor, error) {
	if err := d.call("Alloc"); err != nil {
		return hal.Tensor{}, err
	}
	return d.Device.Alloc(dtype, rows, cols)
}

// Import may be told to fail.
func (d *device) Import(dtype hal.DType, rows, cols int, data []byte) (hal.Tensor, error) {
	if err := d.call("Import"); err != nil {
		return hal.Tensor{}, err
	}
	return d.Device.Import(dtype, rows, cols, data)
}

// NewStream returns a wrapped stream.
func (d *device) NewStream() (hal.Stream, error) {
	if err := d.call("NewStream"); err != nil {
		return nil, err
	}
	st, err := d.Device.NewStream()
	if err != nil {
		return nil, err
	}
	return &stream{gate: d.gate, inner: st}, nil
}

// Join returns a wrapped communicator.
func (d *device) Join(ctx context.Context, g hal.Group, r hal.Rendezvous) (hal.Comm, error) {
	if err := d.in.call(ctx, d.name, "Join"); err != nil {
		return nil, err
	}
	c, err := d.Device.Join(ctx, g, r)
	if err != nil {
		return nil, err
	}
	return &comm{Comm: c, gate: d.gate}, nil
}

// Close closes the device inside also when it is told to fail.
func (d *device) Close() error {
	told := d.call("Close")
	if err := d.Device.Close(); err != nil {
		return err
	}
	return told
}
