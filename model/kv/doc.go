// Package kv accounts for the paged latent KV cache of one engine: which blocks are free, and where a position of a
// sequence lies. It holds numbers, never tensors; the cache itself is the model's, on the device.
package kv
