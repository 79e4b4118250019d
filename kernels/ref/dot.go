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

// dotF8 is row o of an F8_E4M3 weight times x; each element counts its block's scale, rounded to float32 as published.
func dotF8(w *kernels.Weight, o int, x []float32) float32 {
	row := w.U8[o*w.In:][:len(x)]
	scale, block := []float32{1}, (len(x)+3)&^3 // without scales one block spans the row
	if w.Scale != nil {
		scale, block = w.Scale[o/w.BlockRows*w.ScaleCols:], w.BlockCols
	}
	var s [4]float32
	n := len(x) &^ 3
	for from := 0; from < n; from += block {
		f, i, to := scale[from/block], from, min(from+block, n)
		for ; block%4 == 0 && i < to; i += 4 {
			a, b := row[i:i+4:i+4], x[i:i+4:i+4]
			s[0] += float32(f8e4m3[a[0]] * f * b[0])
			s[1] += float32(f8e4m3[a[1]] * f * b[1])
			s[2] += float32(f8e4m3[a[2]] * f * b[2])
			s[3] += float32(f8e4m3[a[3]] * f * b[3])
		}
		for ; i < to; i++ { // blocks that cut a group of four
			s[i&3] += float32(f8e4m3[row[i]] * f * x[i])
		}
	}
	sum := (s[0] + s[1]) + (s[2] + s[3])
	for i := n; i < len(x); i++ {
		sum += float32(f8e4m3[row[i]] * scale[i/block] * x[i])
	}
	return sum
}

// dot returns row o of w times x. // x (In)
func dot(w *kernels.Weight, o int, x []float32) float32 {
	from, to := o*w.In, (o+1)*w.In
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
	k := o*w.In + i
	switch w.Format {
	case kernels.F32:
		return w.F32[k]
	case kernels.BF16:
		return fromBF16(w.U16[k])
	case kernels.F16:
		return fromF16(w.U16[k])
	default:
		v := f8e4m3[w.U8[k]]
		if w.Scale != nil {
			v *= w.Scale[o/w.BlockRows*w.ScaleCols+i/w.BlockCols]
		}
		return v
	}
}

// axpy adds a · row o of w to y. // y (In)
func axpy(y []float32, a float32, w *kernels.Weight, o int) {
	from, to := o*w.In, (o+1)*w.In
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
		if w.Scale == nil {
			for i, v := range row {
				y[i] += float32(a * f8e4m3[v])
			}
			return
		}
		scale := w.Scale[o/w.BlockRows*w.ScaleCols:]
		for first := 0; first < len(row); first += w.BlockCols {
			f := scale[first/w.BlockCols]
			for i := first; i < min(first+w.BlockCols, len(row)); i++ {
				y[i] += float32(a * (f8e4m3[row[i]] * f))
			}
		}
	}
}
