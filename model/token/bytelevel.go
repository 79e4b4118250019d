package token

// byteChars maps a byte to the printable character that stands for it in a byte-level vocabulary; charBytes is its inverse.
// Printable Latin-1 bytes stand for themselves, the other 68 are numbered from U+0100 on (the mapping of GPT-2).
var byteChars, charBytes = byteLevelAlphabet()

func byteLevelAlphabet() (chars [256]rune, bytes map[rune]byte) {
	bytes = make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !(r >= '!' && r <= '~' || r >= 0xA1 && r <= 0xAC || r >= 0xAE && r <= 0xFF) {
			r = next
			next++
		}
		chars[b] = r
		bytes[r] = byte(b)
	}
	return chars, bytes
}

// pieceBytes returns the bytes that a vocabulary string stands for. A string with any character outside the alphabet (an
// added token such as "<｜User｜>") stands for its own UTF-8, as a whole.
func pieceBytes(piece string) []byte {
	out := make([]byte, 0, len(piece))
	for _, r := range piece {
		b, ok := charBytes[r]
		if !ok {
			return []byte(piece)
		}
		out = append(out, b)
	}
	return out
}
