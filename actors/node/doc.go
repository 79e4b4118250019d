// Package node puts the actors of one process together: it opens the devices, loads the model, starts rank, scheduler and
// gateway under one supervisor, and ends them in order. Commands, examples and embedding services call Start.
//
//	node            supervises, starts and stops the others
//	├─ rank/0       a device and its thread
//	├─ scheduler/0  an engine's batches, KV blocks and text
//	└─ gateway      requests and their streams
//
// It is the only package under actors that imports its siblings. It names no backend: the caller hands in the opener.
package node
