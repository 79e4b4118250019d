// Package topology is the pure arithmetic of a layout: which engines and ranks there are and which of them meet, how tensors,
// experts and rows are cut over them, how many rows a step is padded to, which exchange it takes, and which device a rank gets.
// It judges settings and names the legal ones. It knows no devices, does no I/O, and imports nothing of ours.
package topology
