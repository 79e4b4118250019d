// Package hal is the contract between the model and the machine it runs on: a [Device] that a rank owns, the [Buffer]s and
// [Tensor]s that live on it, a [Stream] of ordered work, the [Ops] the model is written in, and errors that carry a class.
//
// The package holds no implementation and imports nothing of ours; backends live below it (hal/cpu) and pass the
// conformance suite hal/haltest. Nothing here decides what runs or when: that is a plan's work.
package hal
