package hal

import "context"

// Group names the ranks that meet in a communicator. A communicator is made for one group and one epoch, and never outlives a
// change of the membership.
type Group struct {
	Name  string
	Epoch uint64
	Rank  int      // of the caller in the group, from 0
	Size  int      // ranks in the group
	Names []string // (Size) what messages call the members, for example "rank 3 on node a"
}

// Rendezvous brings the members of a group together once: each publishes how it can be reached and collects what the others
// published. It is implemented over the bus; what an endpoint holds is the backend's matter.
type Rendezvous interface {
	// Publish makes the caller's endpoint known to all members. It is called once, before Collect.
	Publish(ctx context.Context, endpoint []byte) error
	// Collect waits for the endpoints of all members, by rank in the group. When ctx ends first, the error names the absent.
	Collect(ctx context.Context) ([][]byte, error)
}

// Comm is the data plane of one group and epoch as one of its ranks sees it. All members call the same operations in the same
// order; an operation is work on a stream, ordered with the ops before and after it, and its error sticks to the stream as theirs do. Tensors
// are F32 or I32, sums F32 only and always in the order of the ranks. All but Abort belong to the goroutine that owns the device.
//
// An operation ends in one of two ways: all whom it needs have come, or Abort was called, by any member or by this one's
// supervisor: then it and all later ones fail with class Aborted, naming those who had not come. It has no timer of its own:
// who makes no progress is judged where all ranks are seen.
type Comm interface {
	// Group returns what the communicator was made for.
	Group() Group
	// AllReduce sets out = in₀ + in₁ + … . out may be in. // out, in (R, C) F32
	AllReduce(st Stream, out, in Tensor)
	// AllGather sets rows [r·R, (r+1)·R) of out to the rows of member r. // out (Size·R, C), in (R, C)
	AllGather(st Stream, out, in Tensor)
	// ReduceScatter sets out to this member's rows of in₀ + in₁ + … . // out (R, C), in (Size·R, C) F32
	ReduceScatter(st Stream, out, in Tensor)
	// AllToAllV sends send[p] consecutive rows of in to each member p, in order, and sets out to the rows received, recv[p]
	// from member p, in order. Counts are known on both sides; they may be zero. // out (≥ Σ recv, C), in (≥ Σ send, C), send, recv (Size)
	AllToAllV(st Stream, out Tensor, recv []int, in Tensor, send []int)
	// Send gives t to a member that calls Recv with the same shape. // t (R, C)
	Send(st Stream, t Tensor, to int)
	// Recv fills t from a member that calls Send with the same shape. // t (R, C)
	Recv(st Stream, t Tensor, from int)
	// Barrier lets the stream go on when all members have come.
	Barrier(st Stream)
	// Abort ends every operation that waits or comes later, on all members, with cause. The first call counts. It does not
	// wait, and may be called from any goroutine at any time. The members' devices stop computing as well: until a member has
	// closed its part, a long computation on any stream of its device ends as soon as the backend notices, its outputs undefined
	// and the stream's error of class Aborted.
	Abort(cause error)
	// Close gives up the rank's part; others that still wait for it are aborted. A second call does nothing.
	Close() error
}
