// Package parity compares the whole forward pass with the reference values in test/models/fixtures: logits, hidden states,
// router picks and greedy continuations of all six models, within the tolerances that test/models/README.md states.
package parity
