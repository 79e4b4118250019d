package cpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/kernels"
	"github.com/moerack/moerack/kernels/simd"
)

// Options say which CPU device to open.
type Options struct {
	Index int // number of the device on this host, from 0; it only names the device
	// Devices of this host, from index 0, that are used at once and share its processors; 0: nothing is known of others.
	Devices int
	// Threads of the device, the one that calls it included; 0: the processors shared by Devices, one if these are not known.
	Threads int
	// Bind keeps each thread but the calling one to a processor, if Devices is known and there are enough for all.
	Bind bool
	// Off are names of kernels' instruction sets that are not to be used, as in simd.Names.
	Off []string
}

// maxThreads bounds the threads of a device, far above what a host has.
const maxThreads = 1024

// Open returns a CPU device. It holds nothing but its threads until tensors are allocated. The caller closes it.
func Open(o Options) (hal.Device, error) {
	if o.Index < 0 {
		return nil, &hal.Error{Op: "Open", Device: "cpu", Class: hal.CallerFault, Detail: fmt.Sprintf("device number %d: must be 0 or more", o.Index)}
	}
	if o.Threads < 0 || o.Threads > maxThreads {
		return nil, &hal.Error{Op: "Open", Device: "cpu", Class: hal.CallerFault, Detail: fmt.Sprintf("%d threads: must be 1 … %d, or 0", o.Threads, maxThreads)}
	}
	threads, bound := o.share(processors())
	table, choices, err := simd.Select(o.Off)
	if err != nil {
		return nil, &hal.Error{Op: "Open", Device: "cpu", Class: hal.CallerFault, Detail: "kernels", Err: err}
	}
	d := &device{name: fmt.Sprintf("cpu:%d", o.Index), table: table, pace: newPace(), pool: newPool(threads, bound)}
	for _, c := range choices {
		d.kernels = append(d.kernels, hal.Kernel{Op: c.Op, Impl: c.Implementation, Why: c.Why})
	}
	return d, nil
}

// CheckKernels returns what is wrong with Options.Off.
func CheckKernels(off []string) error {
	_, _, err := simd.Select(off)
	return err
}

// share returns the device's number of threads, and the processors that they keep to, nil for any.
func (o Options) share(processors []int) (threads int, bound []int) {
	threads = o.Threads
	if threads == 0 {
		threads = 1
		if o.Devices > 0 {
			threads = min(max(1, len(processors)/o.Devices), maxThreads)
		}
	}
	if from := o.Index * threads; o.Bind && o.Devices > 0 && o.Devices*threads <= len(processors) && from+threads <= len(processors) {
		bound = processors[from : from+threads]
	}
	return threads, bound
}

// device is used by one goroutine, except for its name and table, which never change.
type device struct {
	name    string
	table   kernels.Table
	kernels []hal.Kernel
	pool    *pool
	onPulse func(waits bool) error
	pace    pace
	closed  bool
	buffers map[*buffer]struct{}
	comms   []*comm // not closed yet
}

// Describe says what the host is and which kernels run.
func (d *device) Describe() hal.Description {
	return hal.Description{Name: d.name, Backend: "cpu", Model: processor(), Cores: runtime.NumCPU(), Threads: d.pool.threads, Kernels: d.kernels}
}

// Pulse has f called between the parts of long operations, and around waits in collectives.
func (d *device) Pulse(f func(waits bool) error) { d.onPulse = f }

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
	case hal.I8:
		b.i8 = view[int8](data)
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

// Close drops all memory. A communicator that was left open gives up its part, so that nobody waits for this device.
func (d *device) Close() error {
	if !d.closed {
		d.pool.close()
	}
	d.closed = true
	for len(d.comms) > 0 {
		if err := d.comms[0].Close(); err != nil {
			return err
		}
	}
	for b := range d.buffers {
		b.Free()
	}
	return nil
}

func (d *device) fault(op, format string, args ...any) error {
	return &hal.Error{Op: op, Device: d.name, Class: hal.CallerFault, Detail: fmt.Sprintf(format, args...)}
}

// buffer is host memory in one of five element types. After Free all slices are nil, so a late use is found by its bounds.
type buffer struct {
	dev   *device
	bytes int64
	freed bool
	f32   []float32
	i32   []int32
	u16   []uint16
	u8    []uint8
	i8    []int8
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
	b.f32, b.i32, b.u16, b.u8, b.i8 = nil, nil, nil, nil, nil
}
