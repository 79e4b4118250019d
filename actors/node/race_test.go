//go:build race

package node

// racing: the race detector makes the arithmetic about thirty times slower and changes no number.
const racing = true
