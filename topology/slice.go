package topology

// Slice returns which of n things part gets when they are cut evenly into parts, [from, to): heads, widths, padded rows. Parts
// differ by at most one; Layout.Validate sees to it that those of a model are equal.
func Slice(n, parts, part int) (from, to int) {
	return n/parts*part + min(part, n%parts), n/parts*(part+1) + min(part+1, n%parts)
}

// VocabSlice returns which tokens of a vocabulary part gets, [from, to). The vocabulary is padded: each part has ⌈n/parts⌉
// rows, and of those of the last parts some are not there.
func VocabSlice(n, parts, part int) (from, to int) {
	rows := (n + parts - 1) / parts
	return min(n, rows*part), min(n, rows*(part+1))
}

// ExpertMap says which rank of a group holds which routed expert: each the same number, in order.
type ExpertMap struct {
	Experts int // routed experts of a layer, a multiple of Ranks
	Ranks   int // over which they are spread, ≥ 1
}

// Rank returns who holds an expert, as its number among the ranks.
func (m ExpertMap) Rank(expert int) int { return expert / (m.Experts / m.Ranks) }

// Range returns the experts that a rank holds, [from, to).
func (m ExpertMap) Range(rank int) (from, to int) { return Slice(m.Experts, m.Ranks, rank) }
