// Package parity compares the whole forward pass with the reference values in test/models/fixtures, within the tolerances that
// test/models/README.md states: logits, hidden states, router picks and greedy continuations of all six models. It does so for one rank and for
// the ranks of a layout in one process, which must also agree with each other bit by bit.
package parity
