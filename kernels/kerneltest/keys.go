package kerneltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// testAttendKeys compares attention of one head with a plain softmax, over lengths around the tile's borders and awkward widths, and
// demands the same bits for rows alone and for any number of calls.
func testAttendKeys(t *testing.T, k kernels.Table) {
	g := newGen(t, 33)
	const tile, scale = kernels.AttentionTile, 0.3
	for _, s := range []struct{ n, rows, width, value int }{
		{1, 1, 5, 3}, {tile, 3, 8, 16}, {tile + 1, 7, 24, 9}, {3*tile - 5, 45, 19, 40}, {5 * tile, 37, 192, 128},
	} {
		q, keys, values := g.mat(s.rows, s.width), g.mat(s.n, s.width), g.mat(s.n, s.value)
		positions := make([]int32, s.rows)
		for i := range positions {
			positions[i] = int32(max(0, s.n-s.rows+i))
		}
		if s.rows > 2 {
			positions[1], positions[2] = 0, int32(s.n/2)
		}
		attend := func(q kernels.Mat, positions []int32, span int) kernels.Mat {
			out, state := guarded(q.Rows, s.value), make([]float32, 2*q.Rows)
			for from := 0; from < s.n; from += span {
				to := min(from+span, s.n)
				k.AttendKeys(out, q, keys.Sub(from, to), values.Sub(from, to), positions, from, scale, state)
			}
			checkGuards(t, "AttendKeys", out)
			return out
		}
		whole := attend(q, positions, 8*tile)
		for r, p := range positions {
			want, terms := softmax64(q.Row(r), keys, values, int(p)+1, scale)
			for i := range want {
				near(t, fmt.Sprintf("%+v: row %d element %d", s, r, i), whole.Row(r)[i], want[i], terms[i], 1e-5)
			}
		}
		pieces := attend(q, positions, tile)
		for r := range positions {
			name := fmt.Sprintf("%+v: row %d", s, r)
			same(t, name+" in pieces", pieces.Row(r), whole.Row(r))
			same(t, name+" alone", attend(q.Sub(r, r+1), positions[r:r+1], 2*tile).Row(0), whole.Row(r))
		}
		reversed := slices.Clone(positions)
		slices.Reverse(reversed)
		other := kernels.Mat{Data: make([]float32, s.rows*s.width), Rows: s.rows, Cols: s.width, Stride: s.width}
		for r := range s.rows {
			copy(other.Row(r), q.Row(s.rows-1-r))
		}
		turned := attend(other, reversed, 2*tile)
		for r := range s.rows {
			same(t, fmt.Sprintf("%+v: row %d in another place", s, r), turned.Row(s.rows-1-r), whole.Row(r))
		}
	}
}

// softmax64 is attention of a row over the first n positions.
func softmax64(q []float32, keys, values kernels.Mat, n int, scale float64) (out, terms []float64) {
	scores, top, sum := make([]float64, n), math.Inf(-1), 0.0
	for p := range n {
		for i, v := range keys.Row(p) {
			scores[p] += float64(q[i]) * float64(v)
		}
		scores[p] *= scale
		top = max(top, scores[p])
	}
	for p := range scores {
		scores[p] = math.Exp(scores[p] - top)
		sum += scores[p]
	}
	out, terms = make([]float64, values.Cols), make([]float64, values.Cols)
	for p, w := range scores {
		for i := range out {
			v := w / sum * float64(values.Row(p)[i])
			out[i] += v
			terms[i] += math.Abs(v)
		}
	}
	return out, terms
}
