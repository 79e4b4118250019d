// Package weights reads the tensors of a checkpoint in safetensors format, in one
// file or in shards, through a read-only memory map: opening reads the headers,
// data is touched when the caller touches it.
//
// It owns the check that every view lies inside its file and has the size its
// shape says, the account of what each reader asked for, and the search for what
// nobody asked for. It does not know which tensors a network needs, converts and
// dequantizes nothing, and never writes.
//
// Data is little-endian, as stored. Two limits come from mapping: a write into a
// view is a fatal fault, and so is reading a view after its file was truncated by
// someone else (SIGBUS). Replace files of a running model by renaming, never in place.
package weights
