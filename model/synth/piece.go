package synth

import (
	"encoding/binary"

	"github.com/moerack/moerack/model/weights"
)

// pieceBytes is about how much of a tensor is made at a time.
const pieceBytes = 1 << 20

// piece is a part of a tensor that is made and written at once: elements [from, to), of an FP8 matrix all those of a row of blocks.
type piece struct {
	t        *tensor
	scales   *tensor // of an FP8 matrix
	from, to int64
}

// pieces cuts all tensors. The scales of FP8 matrices are made with these.
func pieces(list []tensor) []piece {
	var all []piece
	for i := range list {
		t := &list[i]
		step, p := pieceBytes/size(t.element), piece{t: t}
		switch {
		case t.fill == scales:
			continue
		case t.element == weights.F8E4M3:
			step, p.scales = block*int64(t.cols), &list[i+1]
		}
		for p.from = 0; p.from < t.count(); p.from = p.to {
			p.to = min(p.from+step, t.count())
			all = append(all, p)
		}
	}
	return all
}

// made is a piece with its bytes.
type made struct {
	piece
	data   []byte
	scales []byte // of an FP8 matrix
}

// make makes the bytes of the piece, in buf's memory or in more.
func (p piece) make(seed uint64, buf []byte) made {
	n := int((p.to - p.from) * size(p.t.element))
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	m := made{piece: p, data: buf[:n]}
	if p.t.fill == ones {
		fillOnes(m.data, p.t.element)
		return m
	}
	numbers := newNoise(seed, p.t.numbers, p.t.deviation)
	switch p.t.element {
	case weights.F32:
		numbers.f32(m.data, uint64(p.from))
	case weights.BF16:
		numbers.bf16(m.data, uint64(p.from))
	default:
		row := make([]float32, p.scales.cols)
		numbers.f8(m.data, row, int(p.from)/p.t.cols, p.t.cols)
		m.scales, _ = binary.Append(nil, binary.LittleEndian, row) // numbers always have a form
	}
	return m
}

// write puts the piece where it belongs.
func (m made) write(w *weights.Writer) error {
	if err := w.WriteAt(m.t.name, m.data, m.from*size(m.t.element)); err != nil || m.scales == nil {
		return err
	}
	blockRow := m.from / int64(m.t.cols) / block
	return w.WriteAt(m.piece.scales.name, m.scales, blockRow*int64(len(m.scales)))
}

func fillOnes(dst []byte, d weights.DType) {
	const bits = 0x3f800000
	if d == weights.F32 {
		for ; len(dst) >= 4; dst = dst[4:] {
			binary.LittleEndian.PutUint32(dst, bits)
		}
		return
	}
	for ; len(dst) >= 2; dst = dst[2:] {
		binary.LittleEndian.PutUint16(dst, bits>>16)
	}
}
