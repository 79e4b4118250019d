// Package topology is the pure arithmetic of a layout: how many rows a step is padded to. It knows no devices, does no I/O,
// and imports nothing of ours.
package topology
