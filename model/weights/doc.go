// Package weights reads the tensors of a checkpoint in safetensors format, in one
// file or in shards, through a read-only memory map: opening reads the headers,
// data is touched when the caller touches it. It converts matrices to BF16 or int8
// for those who ask for them in such a form, once for all readers, in memory outside
// the Go heap, and it writes safetensors files.
//
// It owns the check that every view lies inside its file and has the size its
// shape says, the account of what each reader asked for, the search for what
// nobody asked for, and the one rule by which numbers are quantized. It does not
// know which tensors a network needs, or in which form.
//
// Data is little-endian, as stored. Two limits come from mapping: a write into a
// view is a fatal fault, and so is reading a view after its file was truncated by
// someone else (SIGBUS). Replace files of a running model by renaming, never in place.
//
// # Int8
//
// A matrix "X.weight" of type I8 (out, in) comes with "X.weight_scale", F32 (out, 1): row
// i counts X.weight[i] * X.weight_scale[i]. Elements are from -127 to 127. These are
// the names and shapes of int8 weights with a scale per channel in the
// compressed-tensors format.
package weights
