// int8 dot products with the base instructions of arm64: two products of at most 16,129 fit 16 bits, which are added pairwise to 32. Include
// after vec_neon.h.
#define FN8(name) moerack_##name##_neon
#define W8 16
#define APART8 0
// Outputs of a tile of 1, 2, … rows.
#define OUTPUTS8_1 8
#define OUTPUTS8_2 8
#define OUTPUTS8_3 8
#define OUTPUTS8_4 6

typedef int8x16_t V8;
typedef int32x4_t S8;
typedef int8x16_t A8;

static inline S8 s8_zero(void) { return vdupq_n_s32(0); }
static inline V8 v8_load(const int8_t *p) { return vld1q_s8(p); }
static inline A8 a8(V8 a) { return a; }
static inline S8 s8_dot(S8 sum, A8 a, V8 b) {
	int16x8_t pairs = vmull_s8(vget_low_s8(a), vget_low_s8(b));
	return vpadalq_s16(sum, vmlal_s8(pairs, vget_high_s8(a), vget_high_s8(b)));
}
static inline int32_t s8_sum(S8 s) { return vaddvq_s32(s); }

// v8_round rounds 16 floats times f to int8, halves to the even one; the products are within ±127.5.
static inline void v8_round(int8_t *out, const float *x, float f) {
	int32x4_t q[4];
	for (int i = 0; i < 4; i++) q[i] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), f));
	int16x8_t a = vcombine_s16(vqmovn_s32(q[0]), vqmovn_s32(q[1])), b = vcombine_s16(vqmovn_s32(q[2]), vqmovn_s32(q[3]));
	vst1q_s8(out, vmaxq_s8(vcombine_s8(vqmovn_s16(a), vqmovn_s16(b)), vdupq_n_s8(-127)));
}
