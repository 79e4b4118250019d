package hal

import "fmt"

// Ops is the list of operations the model is written in. Activations are F32, indices I32. Outputs never alias inputs unless
// the op says so. Shapes are checked; a wrong one is a CallerFault on the stream. Letters: T rows of the step, H hidden,
// N heads, E experts, K experts per token, M = T·K routed rows, V vocabulary.
//
// On every backend a row's result depends on that row's inputs alone, never on T or on its place in the batch; sums of an
// op run in a fixed order.
//
// I8 weights serve MatMul, SwiGLU, their grouped forms and the plain HeadMatMul. The op quantizes each row of x, of a head what it
// has of the row, to int8 symmetrically (scale = largest/127, half to even) and the result is
// float32(Σ x·w) · (scale of the row · scale of the output), the sum exact. A row that is not finite gives outputs that are not.
type Ops interface {
	// Embed sets out[t] to row ids[t]−first of table, a rank's slice of the vocabulary; an id whose row the table does not have gives
	// zeros. Ids are ≥ 0. // out (T, H), table (V, H), ids (1, T)
	Embed(out Tensor, table Weight, ids Tensor, first int)
	// RMSNorm sets out[t] = x[t] / sqrt(mean(x[t]²) + eps) · weight. out may be x. // out, x (T, C), weight (1, C)
	RMSNorm(out, x, weight Tensor, eps float32)
	// AddRMSNorm adds y to x and sets out to the RMSNorm of the sum, with the bits of Add and RMSNorm. out may be y. // out, x, y (T, C), weight (1, C)
	AddRMSNorm(out, x, y, weight Tensor, eps float32)
	// MatMul sets out = x · wᵀ. // out (T, O), x (T, I), w (O, I)
	MatMul(out, x Tensor, w Weight)
	// HeadMatMul multiplies each head's part of x by that head's rows of w, as h describes. // out (T, N·OutStride), x (T, N·InStride)
	HeadMatMul(out, x Tensor, w Weight, h HeadMatMul)
	// Rope rotates interleaved pairs (2i, 2i+1) of each head by the table's angles of the row's position, as r
	// describes. out may be x when the offsets and strides agree. // positions (1, T), table (positions, Dim): cos₀ sin₀ cos₁ sin₁ …
	Rope(out, x, positions, table Tensor, r Rope)
	// StoreKV writes rows[t] to cache row slots[t]; a negative slot writes nothing. // cache (slots, C), rows (T, C), slots (1, T)
	StoreKV(cache, rows, slots Tensor)
	// MLAAttention is absorbed multi-head latent attention (DeepSeek-V2, section 2.1 and appendix C): for each row t of
	// sequence seqs[t] and each head, softmax over cache rows of positions 0 … positions[t] of (q · row)·Scale, then the
	// weighted sum of the rows' first Latent elements. Position p of sequence s is cache row
	// tables[s][p / BlockSize]·BlockSize + p mod BlockSize. A row with a negative sequence gives zeros. Tiles of a fixed number
	// of positions merge by log-sum-exp. // out (T, N·Latent), q (T, N·(Latent+Rope)), cache (slots, Latent+Rope), tables (sequences, blocks), seqs, positions (1, T)
	MLAAttention(out, q, cache, tables, seqs, positions Tensor, a MLAAttention)
	// MLAExpanded is the same attention in its plain form, which costs fewer multiplications where many rows share a sequence: each head's
	// keys are W_uk·latent beside the cache row's rope part, its values W_uv·latent, both made from the cache on the way. q is rotated, not
	// absorbed. Rows of a sequence stand together. A row's bits depend on its sequence alone.
	// // out (T, N·Value), q (T, N·(Nope+Rope)), cache (slots, Latent+Rope), keyUp, valueUp (…, Latent), the others as above
	MLAExpanded(out, q, cache, tables, seqs, positions Tensor, keyUp, valueUp Weight, a MLAExpanded)
	// Route chooses K experts for each row as r describes, in order of weight, largest first, ties by the lower expert. A row with a
	// negative sequence is padding: its ids are −1 and its weights 0. // ids (T, K) I32, weights (T, K), logits (T, E), bias (1, E) or none, seqs (1, T) I32
	Route(ids, weights, logits, bias, seqs Tensor, r Router)
	// SwiGLU sets out = silu(x · gateᵀ) · (x · upᵀ), element by element. // out (T, I), x (T, H), gate, up (I, H)
	SwiGLU(out, x Tensor, gate, up Weight)
	// Dispatch sorts the (row, slot) pairs of experts first … first+E−1 by expert, stably: rows[i] = x[pair / K], index[pair] = i,
	// counts[e] = the number of rows of expert first+e. A pair of another expert, or of none (−1), gets index −1. Rows behind the last pair are not
	// touched. // rows (M, H) with M ≥ the pairs, index (T, K) I32, counts (1, E) I32, x (T, H), ids (T, K)
	Dispatch(rows, index, counts, x, ids Tensor, first int)
	// GroupedSwiGLU is SwiGLU on consecutive groups of rows: counts[e] rows with gate[e] and up[e]. // out (M, I), x (M, H), counts (1, E)
	GroupedSwiGLU(out, x, counts Tensor, gate, up []Weight)
	// GroupedMatMul is MatMul on consecutive groups of rows: counts[e] rows with w[e]. // out (M, O), x (M, I), counts (1, E)
	GroupedMatMul(out, x, counts Tensor, w []Weight)
	// Combine sets out[t] = ((w₀·y₀ + w₁·y₁) + … + w_{K−1}·y_{K−1}) + shared[t] with y_k = rows[index[t][k]], in this order; a term
	// with index −1 is left out. out may be shared. // out (T, H), rows (M, H), index, weights (T, K), shared (T, H) or none
	Combine(out, rows, index, weights, shared Tensor)
	// Add sets out = a + b. out may be a or b. // out, a, b (T, C)
	Add(out, a, b Tensor)
	// GatherRows sets out[i] = x[index[i]]. // out (S, C), x (T, C), index (1, S)
	GatherRows(out, x, index Tensor)
	// MarkNonFinite sets first[t] = tag where first[t] is negative and row t of x holds a NaN or an infinity.
	// // first (1, T) I32, x (T, C)
	MarkNonFinite(first, x Tensor, tag int32)
}

// HeadMatMul describes a product per head with a slice of a weight's rows: head h uses rows [h·Rows+From, h·Rows+To).
// Plain: out[h][j] = Σᵢ x[h][i] · w[h·Rows+From+j][i] (x has the weight's columns, out has To−From elements).
// Transposed: out[h][i] = Σⱼ x[h][j] · w[h·Rows+From+j][i] (x has To−From elements, out the weight's columns).
type HeadMatMul struct {
	Heads      int
	Rows       int // weight rows of one head
	From, To   int // the slice of them that is used
	Transposed bool
	InStride   int // elements from one head of x to the next
	OutStride  int // elements from one head of out to the next
}

// Rope describes which elements of each head are rotated: Dim elements at InOffset of every InStride go to OutOffset of
// every OutStride. Elements outside are not touched.
type Rope struct {
	Heads                int
	Dim                  int // even
	InStride, InOffset   int
	OutStride, OutOffset int
}

// MLAAttention describes absorbed latent attention.
type MLAAttention struct {
	Heads     int
	Latent    int // kv_lora_rank
	Rope      int // qk_rope_head_dim
	BlockSize int // positions in a block
	Scale     float32
}

// MLAExpanded describes latent attention in its plain form. Head h has rows h·KeyRows+KeyFrom … +Nope of keyUp and h·ValueRows+ValueFrom
// … +Value of valueUp.
type MLAExpanded struct {
	Heads            int
	Latent           int // kv_lora_rank
	Nope             int // qk_nope_head_dim
	Rope             int // qk_rope_head_dim
	Value            int // v_head_dim
	KeyRows, KeyFrom int
	ValueRows        int
	ValueFrom        int
	BlockSize        int // positions in a block
	Scale            float32
}

// Scoring turns router logits into scores.
type Scoring uint8

// The scoring functions, by the names configurations use.
const (
	Softmax Scoring = iota + 1
	Sigmoid
)

// TopKMethod is how experts are chosen from scores.
type TopKMethod uint8

// The methods, by the names configurations use.
const (
	Greedy             TopKMethod = iota + 1 // "greedy": the K best scores
	GroupLimitedGreedy                       // "group_limited_greedy": within the TopGroups groups with the best single score; others count as 0
	NoAuxTC                                  // "noaux_tc": scores + bias choose; a group counts its two best; others are out; weights are scores without bias
)

// Router describes expert selection. Weights are the chosen scores, divided by their sum + 1e-20 if Normalize and K > 1 (as in the
// published code: one weight alone keeps its score), times Scale.
type Router struct {
	Scoring   Scoring
	Method    TopKMethod
	Groups    int     // n_group, divides E
	TopGroups int     // topk_group
	Normalize bool    // norm_topk_prob
	Scale     float32 // routed_scaling_factor
}

// Validate reports a description that no backend could carry out, for E experts and K picks.
func (r Router) Validate(experts, k int) error {
	switch {
	case k < 1 || k > experts:
		return fmt.Errorf("router: %d picks of %d experts: need 1 … %d", k, experts, experts)
	case r.Scoring != Softmax && r.Scoring != Sigmoid:
		return fmt.Errorf("router: unknown scoring function %d", r.Scoring)
	case r.Method == Greedy:
		return nil
	case r.Method != GroupLimitedGreedy && r.Method != NoAuxTC:
		return fmt.Errorf("router: unknown top-k method %d", r.Method)
	case r.Groups < 1 || experts%r.Groups != 0:
		return fmt.Errorf("router: %d groups must divide %d experts", r.Groups, experts)
	case r.TopGroups < 1 || r.TopGroups > r.Groups:
		return fmt.Errorf("router: %d chosen groups of %d: need 1 … %d", r.TopGroups, r.Groups, r.Groups)
	case k > r.TopGroups*(experts/r.Groups):
		return fmt.Errorf("router: %d picks of %d groups with %d experts each", k, r.TopGroups, experts/r.Groups)
	case r.Method == NoAuxTC && experts/r.Groups < 2:
		return fmt.Errorf("router: noaux_tc needs groups of at least 2 experts, have %d", experts/r.Groups)
	}
	return nil
}
