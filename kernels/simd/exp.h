// Exponential and what is made of it, on vectors. Include after vec_*.h.
#ifndef MOERACK_EXP_H
#define MOERACK_EXP_H

// v_exp is e^x within 2 ulp: 2^n · e^r with n = round(x/ln 2), ln 2 in two parts, and for |r| ≤ ln 2/2 the Taylor polynomial of
// degree 7, whose remainder is below 2^-29. Two factors for 2^n reach subnormals and infinity; NaN stays NaN.
static inline V v_exp(V x) {
	x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x));
	V n = v_round(v_mul(x, v_set(1.44269504f)));
	V r = v_fma(n, v_set(-0.693359375f), x);
	r = v_fma(n, v_set(2.12194440e-4f), r);
	V p = v_set(1.0f / 5040);
	p = v_fma(p, r, v_set(1.0f / 720));
	p = v_fma(p, r, v_set(1.0f / 120));
	p = v_fma(p, r, v_set(1.0f / 24));
	p = v_fma(p, r, v_set(1.0f / 6));
	p = v_fma(p, r, v_set(0.5f));
	p = v_fma(v_mul(p, r), r, r);
	p = v_add(p, v_set(1.0f));
	V half = v_round(v_mul(n, v_set(0.5f)));
	return v_mul(v_mul(p, v_pow2(half)), v_pow2(v_sub(n, half)));
}

// v_sigmoid is 1/(1+e^-x).
static inline V v_sigmoid(V x) { return v_div(v_set(1.0f), v_add(v_set(1.0f), v_exp(v_sub(v_zero(), x)))); }

// v_silu is x/(1+e^-x).
static inline V v_silu(V x) { return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_zero(), x)))); }

#endif
