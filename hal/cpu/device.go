package cpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
	"github.com/moerack/moerack/kernels/ref"
)

// Options say which CPU device to open.
type Options struct {
	Index int // number of the device on this host, from 0; it only names the device
}

// Open returns a CPU device. It costs nothing and holds nothing until tensors are allocated. The caller closes it.
func Open(o Options) (hal.Device, error) {
	if o.Index < 0 {
		return nil, &hal.Error{Op: "Open", Device: "cpu", Class: hal.CallerFault, Detail: fmt.Sprintf("device number %d: must be 0 or more", o.Index)}
	}
	d := &device{name: fmt.Sprintf("cpu:%d", o.Index), table: ref.Table()}
	return d, nil
}

// device is used by one goroutine, except for its name and table, which never change.
type device struct {
	name    string
	table   kernels.Table
	closed  bool
	buffers map[*buffer]struct{}
}

// Describe says what the host is and which kernels run.
func (d *device) Describe() hal.Description {
	const why = "plain Go is the only implementation in this build"
	ops := []string{"Embed", "RMSNorm", "MatMul", "HeadMatMul", "Rope", "MLAAttention", "Route", "SwiGLU", "Combine", "Add"}
	ks := make([]hal.Kernel, len(ops))
	for i, op := range ops {
		ks[i] = hal.Kernel{Op: op, Impl: d.table.Name, Why: why}
	}
	return hal.Description{Name: d.name, Backend: "cpu", Model: processor(), Cores: runtime.NumCPU(), Kernels: ks}
}

// Memory asks the system.
func (d *device) Memory() (hal.Memory, error) {
	m, err := memory()
	if err != nil {
		return hal.Memory{}, &hal.Error{Op: "Memory", Device: d.name, Class: hal.Transient, Detail: "the system does not say how much memory is free", Err: err}
	}
	return m, nil
}

// maxBytes bounds one buffer, far above what a host has and far below where index arithmetic overflows.
const maxBytes = 1 << 46

func (d *device) check(op string, dtype hal.DType, rows, cols int) (int64, error) {
	switch {
	case d.closed:
		return 0, d.fault(op, "the device is closed")
	case dtype.Size() == 0:
		return 0, d.fault(op, "unknown element type %s", dtype)
	case rows < 1 || cols < 1:
		return 0, d.fault(op, "shape (%d, %d): both sizes must be at least 1", rows, cols)
	case int64(rows) > maxBytes/int64(cols)/int64(dtype.Size()):
		return 0, d.fault(op, "shape (%d, %d) of %s is more than %d bytes", rows, cols, dtype, int64(maxBytes))
	}
	return int64(rows) * int64(cols) * int64(dtype.Size()), nil
}

// Alloc returns zeroed host memory. Only F32 and I32 can be allocated: other types come from checkpoints.
func (d *device) Alloc(dtype hal.DType, rows, cols int) (hal.Tensor, error) {
	n, err := d.check("Alloc", dtype, rows, cols)
	if err != nil {
		return hal.Tensor{}, err
	}
	if err := d.room(n); err != nil {
		return hal.Tensor{}, err
	}
	b := &buffer{dev: d, bytes: n}
	switch dtype {
	case hal.F32:
		b.f32 = make([]float32, rows*cols)
	case hal.I32:
		b.i32 = make([]int32, rows*cols)
	default:
		return hal.Tensor{}, d.fault("Alloc", "%s tensors are only imported, never allocated", dtype)
	}
	return d.tensor(b, dtype, rows, cols), nil
}

// askAbove is the size from which an allocation asks the system first: one that cannot be had would end the process.
const askAbove = 64 << 20

func (d *device) room(bytes int64) error {
	if bytes < askAbove {
		return nil
	}
	if m, err := memory(); err == nil && bytes > m.Free {
		return d.fault("Alloc", "%d bytes wanted, %d are free", bytes, m.Free)
	}
	return nil
}

// Import views data in place.
func (d *device) Import(dtype hal.DType, rows, cols int, data []byte) (hal.Tensor, error) {
	n, err := d.check("Import", dtype, rows, cols)
	if err != nil {
		return hal.Tensor{}, err
	}
	if int64(len(data)) != n {
		return hal.Tensor{}, d.fault("Import", "%s (%d, %d) needs %d bytes, got %d", dtype, rows, cols, n, len(data))
	}
	if a := uintptr(dtype.Size()); uintptr(unsafe.Pointer(unsafe.SliceData(data)))%a != 0 {
		return hal.Tensor{}, d.fault("Import", "%s data is not aligned to %d bytes", dtype, a)
	}
	b := &buffer{dev: d, bytes: n}
	switch dtype {
	case hal.F32:
		b.f32 = view[float32](data)
	case hal.I32:
		b.i32 = view[int32](data)
	case hal.BF16, hal.F16:
		b.u16 = view[uint16](data)
	case hal.F8E4M3:
		b.u8 = data
	}
	return d.tensor(b, dtype, rows, cols), nil
}

// view reads little-endian bytes as the host's own numbers; all supported hosts are little-endian.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

func (d *device) tensor(b *buffer, dtype hal.DType, rows, cols int) hal.Tensor {
	if d.buffers == nil {
		d.buffers = map[*buffer]struct{}{}
	}
	d.buffers[b] = struct{}{}
	return hal.Tensor{Buf: b, DType: dtype, Rows: rows, Cols: cols, Stride: cols}
}

// NewStream returns a stream that runs work at once.
func (d *device) NewStream() (hal.Stream, error) {
	if d.closed {
		return nil, d.fault("NewStream", "the device is closed")
	}
	return &stream{dev: d}, nil
}

// Close drops all memory.
func (d *device) Close() error {
	d.closed = true
	for b := range d.buffers {
		b.Free()
	}
	return nil
}

func (d *device) fault(op, format string, args ...any) error {
	return &hal.Error{Op: op, Device: d.name, Class: hal.CallerFault, Detail: fmt.Sprintf(format, args...)}
}

// buffer is host memory in one of four element types. After Free all slices are nil, so a late use is found by its bounds.
type buffer struct {
	dev   *device
	bytes int64
	freed bool
	f32   []float32
	i32   []int32
	u16   []uint16
	u8    []uint8
}

// Bytes returns the size in bytes.
func (b *buffer) Bytes() int64 { return b.bytes }

// Free drops the memory.
func (b *buffer) Free() {
	if b.freed {
		return
	}
	b.freed = true
	delete(b.dev.buffers, b)
	b.f32, b.i32, b.u16, b.u8 = nil, nil, nil, nil
}
