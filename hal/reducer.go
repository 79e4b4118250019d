package hal

// ReduceBlock is how many numbers a Reducer takes together.
const ReduceBlock = 64

// Reducer is what a device may offer for rows of results on the host, where tokens are chosen from them: a pass over a whole vocabulary
// as fast as the host allows. Methods neither wait nor allocate, and may be called at any time until the device is closed, by
// one goroutine. out has an element for each ReduceBlock of x, the last of which may be shorter; no result depends on other rows.
type Reducer interface {
	// BlockMax sets out[b] to the largest number of block b of x, NaN passed over; −Inf if there is no other.
	BlockMax(out, x []float32)
	// BlockSumExp sets out[b] to Σ exp((x[i] − most)·scale) over block b, within 2e-6 of it. most is the largest number of x.
	BlockSumExp(out, x []float32, most, scale float32)
}
