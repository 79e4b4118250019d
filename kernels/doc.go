// Package kernels is the vocabulary of the maths below a CPU device: matrices as slices, the description of each operation,
// and [Table], the set of functions that an implementation fills. Implementations live below it (kernels/ref); they pass
// kernels/kerneltest. A kernel checks nothing, allocates nothing and cannot fail: its caller (hal/cpu) has checked shapes and
// index ranges. Nothing here knows devices, threads or models.
//
// Letters in shapes: T rows, I inputs, O outputs, H hidden, N heads, E experts, K experts per row, M = T·K routed rows.
//
// Order of summation: every implementation sums a dot product in one order that depends on the vector length alone, so a row's
// bits do not change with the number of rows. Different implementations may differ in that order.
package kernels
