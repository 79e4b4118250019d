package ref

import "github.com/moerack/moerack/kernels"

// A dot product is four interleaved sums over the multiples of four, s_j = Σ a[4i+j]·b[4i+j], added as (s₀+s₁)+(s₂+s₃), then
// the rest in order. All formats use this order, so a weight gives the same bits however it is stored. Products are converted to
// float32 before they are added: the language lets a compiler fuse the two otherwise, in one loop and not in another.

func dotF32(w, x []float32) float32 {
	w = w[:len(x)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := w[i:i+4:i+4], x[i:i+4:i+4]
		s0 += float32(a[0] * b[0])
		s1 += float32(a[1] * b[1])
		s2 += float32(a[2] * b[2])
		s3 += float32(a[3] * b[3])
	}
	s := (s0 + s1) + (s2 + s3)
	for ; i < len(x); i++ {
		s += float32(w[i] * x[i])
	}
	return s
}

func dotBF16(w []uint16, x []float32) float32 {
	w = w[:len(x)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := w[i:i+4:i+4], x[i:i+4:i+4]
		s0 += float32(fromBF16(a[0]) * b[0])
		s1 += float32(fromBF16(a[1]) * b[1])
		s2 += float32(fromBF16(a[2]) * b[2])
		s3 += float32(fromBF16(a[3]) * b[3])
	}
	s := (s0 + s1) + (s2 + s3)
	for ; i < len(x); i++ {
		s += float32(fromBF16(w[i]) * x[i])
	}
	return s
}

func dotF16(w []uint16, x []float32) float32 {
	w = w[:len(x)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := w[i:i+4:i+4], x[i:i+4:i+4]
		s0 += float32(fromF16(a[0]) * b[0])
		s1 += float32(fromF16(a[1]) * b[1])
		s2 += float32(fromF16(a[2]) * b[2])
		s3 += float32(fromF16(a[3]) * b[3])
	}
	s := (s0 + s1) + (s2 + s3)
	for ; i < len(x); i++ {
		s += float32(fromF16(w[i]) * x[i])
	}
	return s
}

// unscaled serves FP8 weights that have no scales.
var unscaled = []float32{1}

// scaled returns the scales of the blocks that row o of an FP8 weight crosses, their width, and where in the first of them the row
// begins: element i counts scale[(into+i)/block].
func scaled(w *kernels.Weight, o int) (scale []float32, block, into int) {
	if w.Scale == nil {
		return unscaled, max(w.In, 1), 0
	}
	return w.Scale[(w.RowStart+o)/w.BlockRows*w.ScaleCols+w.ColStart/w.BlockCols:], w.BlockCols, w.ColStart % w.BlockCols
}

// dotF8 is row o of an F8_E4M3 weight times x; each element counts its block's scale, rounded to float32 as published.
func dotF8(w *kernels.Weight, o int, x []float32) float32 {
	row := w.U8[o*w.Stride:][:len(x)]
	scale, block, into := scaled(w, o)
	var s [4]float32
	n := len(x) &^ 3
	for i, k := 0, 0; i < n; k++ {
		f, to := scale[k], min((k+1)*block-into, n)
		for ; i < to && i&3 != 0; i++ { // the block before cut a group of four
			s[i&3] += float32(f8e4m3[row[i]] * f * x[i])
		}
		for ; i+4 <= to; i += 4 {
			a, b := row[i:i+4:i+4], x[i:i+4:i+4]
			s[0] += float32(f8e4m3[a[0]] * f * b[0])
			s[1] += float32(f8e4m3[a[1]] * f * b[1])
			s[2] += float32(f8e4m3[a[2]] * f * b[2])
			s[3] += float32(f8e4m3[a[3]] * f * b[3])
		}
		for ; i < to; i++ { // this block cuts one
			s[i&3] += float32(f8e4m3[row[i]] * f * x[i])
		}
	}
	sum := (s[0] + s[1]) + (s[2] + s[3])
	for i := n; i < len(x); i++ {
		sum += float32(f8e4m3[row[i]] * scale[(into+i)/block] * x[i])
	}
	return sum
}

// dot returns row o of w times x. // x (In)
func dot(w *kernels.Weight, o int, x []float32) float32 {
	from := o * w.Stride
	to := from + w.In
	switch w.Format {
	case kernels.F32:
		return dotF32(w.F32[from:to], x)
	case kernels.BF16:
		return dotBF16(w.U16[from:to], x)
	case kernels.F16:
		return dotF16(w.U16[from:to], x)
	default:
		return dotF8(w, o, x)
	}
}

// at returns the real value of element (o, i).
func at(w *kernels.Weight, o, i int) float32 {
	k := o*w.Stride + i
	switch w.Format {
	case kernels.F32:
		return w.F32[k]
	case kernels.BF16:
		return fromBF16(w.U16[k])
	case kernels.F16:
		return fromF16(w.U16[k])
	default:
		scale, block, into := scaled(w, o)
		return f8e4m3[w.U8[k]] * scale[(into+i)/block]
	}
}

// axpy adds a · row o of w to y. // y (In)
func axpy(y []float32, a float32, w *kernels.Weight, o int) {
	from := o * w.Stride
	to := from + w.In
	switch w.Format {
	case kernels.F32:
		for i, v := range w.F32[from:to] {
			y[i] += float32(a * v)
		}
	case kernels.BF16:
		for i, v := range w.U16[from:to] {
			y[i] += float32(a * fromBF16(v))
		}
	case kernels.F16:
		for i, v := range w.U16[from:to] {
			y[i] += float32(a * fromF16(v))
		}
	default:
		row := w.U8[from:to]
		scale, block, into := scaled(w, o)
		for i, k := 0, 0; i < len(row); k++ {
			f := scale[k]
			for end := min((k+1)*block-into, len(row)); i < end; i++ {
				y[i] += float32(a * (f8e4m3[row[i]] * f))
			}
		}
	}
}
