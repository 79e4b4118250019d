package kernels

// Table is one implementation of the operations. hal.Ops says what each computes; here is only what concerns slices.
// Outputs do not overlap inputs unless noted.
type Table struct {
	Name string // of the implementation

	// Embed: out[t] = float32(table row ids[t]−first), zeros where the table has no such row. // out (T, H), table (V, H), ids (T)
	Embed func(out Mat, table *Weight, ids []int32, first int)
	// RMSNorm: out[t] = x[t] / sqrt(mean(x[t]²)+eps) · w; out may be x. // out, x (T, C), w (C)
	RMSNorm func(out, x Mat, w []float32, eps float32)
	// AddRMSNorm: x += y, out = RMSNorm of x, bits as from both ops; out may be y. // out, x, y (T, C), w (C)
	AddRMSNorm func(out, x, y Mat, w []float32, eps float32)
	// MatMul: out = x · wᵀ. // out (T, O), x (T, I), w (O, I)
	MatMul func(out, x Mat, w *Weight)
	// HeadMatMul: a product per head with some rows of w. // out (T, N·OutStride), x (T, N·InStride)
	HeadMatMul func(out, x Mat, w *Weight, h HeadMatMul)
	// Rope: rotates interleaved pairs by the angles of table row positions[t]; out may be x at equal offsets. // table (positions, Dim): cos₀ sin₀ cos₁ sin₁ …
	Rope func(out, x Mat, positions []int32, table Mat, r Rope)
	// MLAAttention: absorbed latent attention over a paged cache; scratch holds AttentionTile floats.
	// // out (T, N·Latent), q (T, N·(Latent+Rope)), cache (slots, Latent+Rope), tables (sequences, blocks), seqs, positions (T)
	MLAAttention func(out, q, cache Mat, tables Ints, seqs, positions []int32, a MLAAttention, scratch []float32)
	// AttendKeys: rows of one head and sequence over the keys and values of positions from, from+1, …, each up to its own position. Calls
	// for ascending from, multiples of AttentionTile from 0 on, continue one another; state (2·T) goes from one to the next, as out does,
	// which is whole for a row when its own position was among the keys. Bits depend on neither rows nor calls.
	// // out (T, Value), q (T, C), keys (P, C), values (P, Value), positions (T)
	AttendKeys func(out, q, keys, values Mat, positions []int32, from int, scale float32, state []float32)
	// Route: chooses experts; scratch holds RouterScratch floats. A NaN score comes first, so that it shows in the weights; the experts are distinct in any case.
	// // ids (T, K), weights (T, K), logits (T, E), bias (E) or nil
	// A row with a negative sequence gets ids −1 and weights 0; seqs may be nil.
	Route func(ids Ints, weights, logits Mat, bias []float32, seqs []int32, r Router, scratch []float32)
	// SwiGLU: out = silu(x · gateᵀ) · (x · upᵀ). // out (T, I), x (T, H), gate, up (I, H)
	SwiGLU func(out, x Mat, gate, up *Weight)
	// Quantize: row t of out is x[t] in steps of Scale[t] = max|x[t]|/127, rounded to even; a row below 2⁻¹⁰⁰ is zeros with scale 0, one
	// that is not finite has scale NaN, so that what is made of it is not finite either. // out, x (T, C)
	Quantize func(out Rows8, x Mat)
	// MatMul8: out[t][o] = float32(Σ x[t][i]·w[o][i]) · (x.Scale[t]·w.Scale[o]); the sum is exact for I < 133,000, so all implementations
	// give the same bits. w is I8. // out (T, O), x (T, I), w (O, I)
	MatMul8 func(out Mat, x Rows8, w *Weight)
	// SwiGLU8: out = silu(x · gateᵀ) · (x · upᵀ) with the products of MatMul8. // out (T, I), x (T, H), gate, up (I, H)
	SwiGLU8 func(out Mat, x Rows8, gate, up *Weight)
	// Combine: out[t] = ((w₀·y₀ + w₁·y₁) + …) + shared[t], y_k = rows[index[t][k]], without the terms of index −1; out may be shared,
	// whose Data is nil if there is none.
	// // out (T, H), rows (M, H), index, weights (T, K), shared (T, H)
	Combine func(out, rows Mat, index Ints, weights, shared Mat)
	// Add: out = a + b; out may be a or b. // (T, C)
	Add func(out, a, b Mat)
	// Finite reports whether no element is NaN or infinite.
	Finite func(x []float32) bool
	// BlockMax: out[b] is the largest of the ReduceBlock elements of x from b·ReduceBlock on; NaN is passed over, −Inf if nothing else is
	// there. // out (Blocks(V)), x (V)
	BlockMax func(out, x []float32)
	// BlockSumExp: out[b] = Σ exp((x[i]−most)·scale) over the same elements, within 2e-6 of the sum. // out (Blocks(V)), x (V)
	BlockSumExp func(out, x []float32, most, scale float32)
}

// ReduceBlock is how many elements BlockMax and BlockSumExp take together.
const ReduceBlock = 64

// Blocks returns how many blocks n elements make; the last one may be shorter.
func Blocks(n int) int { return (n + ReduceBlock - 1) / ReduceBlock }

// HeadMatMul describes a product per head: head h uses weight rows [h·Rows+From, h·Rows+To). Plain: out[h][j] = x[h] · row j.
// Transposed: out[h] = Σⱼ x[h][j] · row j, added in the order of j.
type HeadMatMul struct {
	Heads      int
	Rows       int
	From, To   int
	Transposed bool
	InStride   int
	OutStride  int
}

// Rope describes which elements of each head are rotated: Dim elements at InOffset of every InStride go to OutOffset of every
// OutStride.
type Rope struct {
	Heads                int
	Dim                  int
	InStride, InOffset   int
	OutStride, OutOffset int
}

// AttentionTile is the number of positions whose scores are merged at once. It is a constant of the maths, not of the memory
// layout: changing page sizes or chunks never moves a tile's border.
const AttentionTile = 64

// MLAAttention describes absorbed latent attention.
type MLAAttention struct {
	Heads     int
	Latent    int
	Rope      int
	BlockSize int
	Scale     float32
}

// Router describes expert selection; hal.Router says what the fields mean.
type Router struct {
	Sigmoid   bool // scores are sigmoids, else a softmax
	Method    TopKMethod
	Groups    int
	TopGroups int
	Normalize bool
	Scale     float32
}

// TopKMethod is how experts are chosen from scores.
type TopKMethod uint8

// The methods. The zero value is none.
const (
	Greedy TopKMethod = iota + 1
	GroupLimitedGreedy
	NoAuxTC
)

// RouterScratch returns the floats that Route needs.
func RouterScratch(experts, groups int) int { return 2*experts + groups }
