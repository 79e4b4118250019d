package kv

// BlocksFor returns how many blocks of the given size hold n positions.
func BlocksFor(n, blockSize int) int { return (n + blockSize - 1) / blockSize }

// Slot returns the cache row of a position, given its sequence's blocks in order.
func Slot(blocks []int32, position, blockSize int) int32 {
	return blocks[position/blockSize]*int32(blockSize) + int32(position%blockSize)
}
