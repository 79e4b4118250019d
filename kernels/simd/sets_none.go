//go:build !cgo || !(amd64 || arm64)

package simd

// none says why there is no instruction set.
const none = "built without cgo, or for a processor without fast kernels: plain Go is the only implementation"

func sets() []set { return nil }
