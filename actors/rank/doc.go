// Package rank owns one device and runs the steps it is told to. A rank is an actor, which answers at once, and one goroutine
// locked to an OS thread, which opens the device, loads the model, joins the communicators of an epoch, computes, and closes the
// device; a panic there becomes an error. The goroutine outlives restarts of the actor.
//
//	loading → ready → failed
//	      ╲        ╲      ╲
//	       → → → → → → → → → stopping
//
// A rank decides nothing: what runs, in which order and with which padding is in the plan. It runs the steps of the epoch that it
// has joined, in order; one step may wait behind the running one, with placeholders for the tokens that are not chosen yet.
package rank
