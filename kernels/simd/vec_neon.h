// Advanced SIMD of arm64: four float32 lanes.
#ifndef MOERACK_VEC_H
#define MOERACK_VEC_H

#include <arm_neon.h>
#include <stdint.h>

#define FN(name) moerack_##name##_neon
#define W 4
#define TILE_N 6  // 4 × 6 accumulators and their operands fit 32 registers
// Outputs of a tile of 1, 2, … rows.
#define OUTPUTS_1 8
#define OUTPUTS_2 8
#define OUTPUTS_3 8
#define OUTPUTS_4 TILE_N

typedef float32x4_t V;

static inline V v_zero(void) { return vdupq_n_f32(0); }
static inline V v_set(float x) { return vdupq_n_f32(x); }
static inline V v_load(const float *p) { return vld1q_f32(p); }
static inline void v_store(float *p, V a) { vst1q_f32(p, a); }
static inline V v_add(V a, V b) { return vaddq_f32(a, b); }
static inline V v_sub(V a, V b) { return vsubq_f32(a, b); }
static inline V v_mul(V a, V b) { return vmulq_f32(a, b); }
static inline V v_div(V a, V b) { return vdivq_f32(a, b); }
static inline V v_fma(V a, V b, V c) { return vfmaq_f32(c, a, b); }
static inline V v_sqrt(V a) { return vsqrtq_f32(a); }
// v_max and v_min return b where a or b is NaN.
static inline V v_max(V a, V b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline V v_min(V a, V b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline V v_abs(V a) { return vabsq_f32(a); }
// v_round rounds to the nearest whole number, halves to the even one.
static inline V v_round(V a) { return vrndnq_f32(a); }
// v_pow2 is 2 to a whole number from -126 to 127.
static inline V v_pow2(V n) { return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)), 23)); }
// v_swap exchanges neighbours, v_evens and v_odds double the even and the odd lanes.
static inline V v_swap(V a) { return vrev64q_f32(a); }
static inline V v_evens(V a) { return vtrn1q_f32(a, a); }
static inline V v_odds(V a) { return vtrn2q_f32(a, a); }

// v_sum adds the lanes as (0+2) + (1+3).
static inline float v_sum(V a) {
	float32x2_t s = vadd_f32(vget_low_f32(a), vget_high_f32(a));
	return vget_lane_f32(s, 0) + vget_lane_f32(s, 1);
}

// The next ones widen W numbers exactly.
static inline V v_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
static inline V v_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }

// v_f8 widens OCP E4M3 by way of binary16, whose exponent has one bit more: the bits fit in, 2^8 too small. 0x7f is NaN.
static inline V v_f8(const uint8_t *p) {
	uint16x4_t c = {p[0], p[1], p[2], p[3]};
	uint16x4_t low = vand_u16(c, vdup_n_u16(0x7f));
	uint16x4_t nan = vceq_u16(low, vdup_n_u16(0x7f));
	uint16x4_t half = vorr_u16(vshl_n_u16(low, 7), vshl_n_u16(vand_u16(c, vdup_n_u16(0x80)), 8));
	half = vorr_u16(half, vand_u16(nan, vdup_n_u16(0x7e00)));
	return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(half)), 256.0f);
}

#endif
