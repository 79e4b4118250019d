// Package sample turns a row of logits into a token: greedy choice, temperature, top-k, top-p, log-probabilities, and the
// matching of stop strings in generated text. It is pure: the same logits, parameters and position give the same token, on
// whatever rank and in whatever batch, because randomness is keyed by (seed, position).
package sample
