package hal

import "context"

// Description says what a device is, for logs, doctor and capability checks. It does not change while the device is open.
type Description struct {
	Name    string   // unique on the host, for example "cpu:0"
	Backend string   // "cpu", …
	Model   string   // the hardware in its vendor's words
	Cores   int      // hardware threads of the host
	Threads int      // that compute
	Kernels []Kernel // which implementation serves each op
}

// Kernel says which implementation serves an op, and why it was chosen.
type Kernel struct {
	Op, Impl, Why string
}

// Memory is a device's memory in bytes.
type Memory struct {
	Free, Total int64
}

// Device is one accelerator, or a share of the host's cores, owned by one rank. All methods are called from the rank's own
// OS thread, except Describe, which anyone may call at any time. After Close every other method fails with CallerFault.
type Device interface {
	Describe() Description
	// Memory asks the system how much memory is free now.
	Memory() (Memory, error)
	// Alloc returns a zeroed tensor with Stride = cols in a buffer of its own, which the caller frees.
	Alloc(dtype DType, rows, cols int) (Tensor, error)
	// Import makes a tensor of a checkpoint's bytes (little-endian, row-major, exactly rows·cols elements, aligned to the
	// element). A backend that shares memory with the host uses them in place and only reads them: data must stay valid
	// and unchanged until Close. Others copy.
	Import(dtype DType, rows, cols int, data []byte) (Tensor, error)
	// NewStream returns a stream of ordered work. It lives until Close.
	NewStream() (Stream, error)
	// Pulse has f called now and then while an operation runs, by the thread that runs it: a sign that a long one makes progress.
	// waits says that the thread has come to a meeting and begins to wait for other ranks; a later call without it, that it goes on.
	// An error of f says that the work is not wanted any more: the operation ends there, or before it meets, its outputs undefined
	// and the stream's error of class Aborted with this cause; one that has met the others is finished first. A nil f ends the
	// calls. A device that cannot look into its operations never makes any. Pulse may be called at any time but during an operation.
	Pulse(f func(waits bool) error)
	// Join makes this device a member of a group and waits for the others. When ctx ends first, the error says who is
	// absent. The communicator is closed before the device.
	Join(ctx context.Context, g Group, r Rendezvous) (Comm, error)
	// Close frees everything the device holds. Work must have been synchronised. A second call does nothing.
	Close() error
}

// Stream is a queue of work that runs in the order it was put in. Ops may return before the work has run; an operand must not
// be freed or read by the host until Synchronize returned. The first error sticks: what is queued after it does nothing,
// Err and Synchronize return it. A stream belongs to one goroutine.
type Stream interface {
	Ops
	// PutInt32 writes src into the rows of dst, which hold len(src) elements. src may be reused when the call returns.
	PutInt32(dst Tensor, src []int32)
	// PutFloat32 writes src into the rows of dst, which hold len(src) elements. src may be reused when the call returns.
	PutFloat32(dst Tensor, src []float32)
	// GetInt32 fills dst from the rows of src, which hold len(dst) elements. dst is valid after Synchronize.
	GetInt32(dst []int32, src Tensor)
	// GetFloat32 fills dst from the rows of src, which hold len(dst) elements. dst is valid after Synchronize.
	GetFloat32(dst []float32, src Tensor)
	// Err returns the first error known so far without waiting. Only Synchronize knows of all.
	Err() error
	// Synchronize waits until all queued work has run, or ctx ends, and returns the first error since the last call,
	// after which the stream is usable again unless the error's class is DeviceLost.
	Synchronize(ctx context.Context) error
}
