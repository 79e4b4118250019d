package topology

import (
	"strconv"
	"strings"
)

// divisors returns the numbers that divide all of sizes, ascending. A size of 0 is one that the model does not have; if none is
// left the answer is nil: every number does.
func divisors(sizes ...int) []int {
	common := 0
	for _, s := range sizes {
		common = gcd(common, s)
	}
	var low, high []int
	for d := 1; d <= common/d; d++ {
		if common%d == 0 {
			low = append(low, d)
			if d != common/d {
				high = append(high, common/d)
			}
		}
	}
	for i := len(high) - 1; i >= 0; i-- {
		low = append(low, high[i])
	}
	return low
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// list writes numbers as "1, 2, 4".
func list(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ", ")
}

// span names things from … to−1: "engine 2", "engines 2 … 5".
func span(thing string, from, to int) string {
	if to-from == 1 {
		return thing + " " + strconv.Itoa(from)
	}
	return thing + "s " + strconv.Itoa(from) + " … " + strconv.Itoa(to-1)
}
