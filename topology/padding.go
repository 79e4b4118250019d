package topology

// PadTo returns the rows that every engine computes in a step: the largest number of real rows, at least 1, rounded up to a
// multiple of the tensor-parallel degree, so that row-sharded tensors divide.
func PadTo(rows []int, tensorParallel int) int {
	most := 1
	for _, r := range rows {
		most = max(most, r)
	}
	return (most + tensorParallel - 1) / tensorParallel * tensorParallel
}
