package cpu

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// pin keeps the calling thread on a processor. That is a wish: where the system refuses it, the thread runs anywhere.
func pin(cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set)
}

// processors returns those that the process may use, ascending.
func processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return make([]int, runtime.NumCPU())
	}
	var list []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list
}
