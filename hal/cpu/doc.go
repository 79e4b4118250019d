// Package cpu is the backend that computes on the host's cores: it joins the contract hal to the maths in kernels and is the
// oracle for every other backend. Tensors are host memory; weights of a mapped checkpoint are used in place. Work runs in the
// calling goroutine when it is queued, so Synchronize never waits;
// a collective waits for the other ranks in its call.
package cpu
