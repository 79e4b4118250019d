//go:build !race

package node

const racing = false
