// Attention of one head in its plain form: rows over keys and values that were expanded from latents. Include after attention.h, whose
// tiles and order of summation it has; here rows, HEADS of them at once, stand where the heads of a row stand there.
//
// Rows of a group see different numbers of positions. Behind the last one of a row its weights are 0, which adds nothing, and a tile without
// any leaves its result as it is: a row's bits are those that it gets alone.

// keys_group is up to HEADS rows under way.
typedef struct {
	attend_state st;
	const float *q[HEADS];
	float *out[HEADS];
	int64_t n[HEADS];  // positions of each row
	int64_t rows;
	const float *values[ROW_POINTERS];
} keys_group;

// keys_tile takes positions [from, from+count). // st.rows, values: of these positions
static void keys_tile(keys_group *g, int64_t from, int64_t count, int64_t width, int64_t value, float scale) {
	attend_state *st = &g->st;
	for (int64_t h = 0; h < g->rows; h += TILE_HEADS) {
		const float *qs[TILE_HEADS];
		float *ss[TILE_HEADS];
		for (int i = 0; i < TILE_HEADS; i++) qs[i] = g->q[at_most(h + i, g->rows)];
		for (int64_t p = 0; p < count; p += TILE_N) {
			for (int i = 0; i < TILE_HEADS; i++) ss[i] = st->s[at_most(h + i, g->rows)] + p;
			score_tile(ss, qs, st->rows + p, width, scale);
		}
	}
	const int fresh = from == 0;
	float tile[HEADS] = {0};
	memcpy(st->keep, st->top, sizeof st->keep);
	for (int64_t h = 0; h < g->rows; h++) {
		int64_t n = g->n[h] - from;
		n = n < 0 ? 0 : n < count ? n : count;
		if (n) tile[h] = softmax_tile(st->s[h], n, &st->top[h]);
		for (int64_t p = n; p < count; p++) st->s[h][p] = 0;
	}
	for (int64_t h = 0; h < g->rows; h += W) v_store(st->keep + h, v_exp(v_sub(v_load(st->keep + h), v_load(st->top + h))));
	for (int64_t h = 0; h < g->rows; h++) st->sum[h] = fresh ? tile[h] : st->sum[h] * st->keep[h] + tile[h];
	for (int64_t col = 0; col < value;) {
		const int64_t rest = value - col;
		for (int64_t h = 0; h < g->rows; h += VALUE_HEADS) {
			float *os[VALUE_HEADS], keep[VALUE_HEADS];
			const float *ws[VALUE_HEADS];
			for (int i = 0; i < VALUE_HEADS; i++) {
				const int64_t j = at_most(h + i, g->rows);
				os[i] = g->out[j] + col, ws[i] = st->s[j], keep[i] = st->keep[j];
			}
			if (rest >= VALUE_VECS * W) value_tile(os, ws, keep, g->values, col, VALUE_VECS, W, count, fresh, NULL);
			else value_tile(os, ws, keep, g->values, col, 1, rest < W ? rest : W, count, fresh, NULL);
		}
		col += rest >= VALUE_VECS * W ? VALUE_VECS * W : W;
	}
}

static void attend_keys(float *out, int64_t out_stride, const float *q, int64_t q_stride, const float *keys, int64_t keys_stride, const float *values,
                        int64_t values_stride, const int32_t *positions, int64_t rows, mr_keys a, float *state) {
	keys_group g;
	for (int64_t first = 0; first < rows;) {
		int64_t row[HEADS], most = 0;
		for (g.rows = 0; first < rows && g.rows < HEADS; first++) {
			if (positions[first] < a.from) continue;  // it is through
			const int64_t h = g.rows++;
			row[h] = first;
			g.q[h] = q + first * q_stride;
			g.out[h] = out + first * out_stride;
			g.n[h] = positions[first] + 1;
			g.st.top[h] = a.from ? state[first] : -INFINITY;
			g.st.sum[h] = a.from ? state[rows + first] : 0;
			most = g.n[h] > most ? g.n[h] : most;
		}
		for (int64_t h = g.rows; h < HEADS; h++) g.st.top[h] = 0;
		most = most - a.from < a.positions ? most - a.from : a.positions;
		for (int64_t p = 0; p < most; p += MR_ATTENTION_TILE) {
			const int64_t count = most - p < MR_ATTENTION_TILE ? most - p : MR_ATTENTION_TILE;
			for (int64_t i = 0; i < ROW_POINTERS; i++) {
				g.st.rows[i] = keys + (p + at_most(i, count)) * keys_stride;
				g.values[i] = values + (p + at_most(i, count)) * values_stride;
			}
			keys_tile(&g, a.from + p, count, a.width, a.value, a.scale);
		}
		for (int64_t h = 0; h < g.rows; h++) {
			state[row[h]] = g.st.top[h];
			state[rows + row[h]] = g.st.sum[h];
			if (g.n[h] > a.from + a.positions) continue;
			const V sum = v_set(g.st.sum[h]);
			int64_t k = 0;
			for (; k + W <= a.value; k += W) v_store(g.out[h] + k, v_div(v_load(g.out[h] + k), sum));
			if (k < a.value) store_rest(g.out[h] + k, v_div(load_rest(g.out[h] + k, a.value - k), sum), a.value - k);
		}
	}
}
