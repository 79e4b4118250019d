//go:build !linux

package cpu

import "runtime"

// pin does nothing: this system does not let a thread choose its processor.
func pin(int) {}

// processors returns as many as there are.
func processors() []int { return make([]int, runtime.NumCPU()) }
