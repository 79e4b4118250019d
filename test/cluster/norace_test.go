//go:build !race

package cluster

const racing = false
