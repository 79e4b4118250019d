// Package rank owns one device and runs the steps it is told to. A rank is an actor, which answers at once, and one goroutine
// locked to an OS thread, which opens the device, loads the model, computes, and closes the device; a panic there becomes an
// error. The goroutine outlives restarts of the actor.
//
//	loading → ready → failed
//	      ╲        ╲      ╲
//	       → → → → → → → → → stopping
//
// A rank decides nothing: what runs, in which order and with which padding is in the plan.
package rank
