// Package kerneltest is the conformance suite of kernel implementations: every op of a kernels.Table against its formula in
// float64, at awkward sizes, strides and offsets, with weights cut out of larger ones, with guard zones around every output, and
// with the exact equality of a row computed alone and among others.
package kerneltest
