// Package node puts the actors of one process together: it registers with the cluster's coordinator, opens the devices, loads
// the model, starts the actors under one supervisor, and ends them in order. Commands, examples and embedding services call
// Start.
//
//	node                supervises, starts and stops the others
//	├─ coordinator      one plan for every step of every group; on one node of the cluster
//	├─ rank/R           a device and its thread
//	├─ expertgroup/G    brings the ranks of a group together, and apart
//	├─ agent/G          the node's voice in a group: votes out, plans in
//	├─ scheduler/E      an engine's batches, KV blocks and text
//	└─ gateway          requests and their streams
//
// A start goes from top to bottom: register; load ranks; when those of a group are ready, join them; when the coordinator has
// planned the group's first step it is up, and when all groups are, the gateway opens. The end goes through abort all, drain
// all, then stop: gateway's requests first, schedulers, agents, groups, ranks, gateway, coordinator.
//
// One strategy judges failures. A rank that fails in a group of several is reported to the coordinator, whose verdict ends the
// epoch on all nodes; a node that hears a verdict fails with its cause. A rank alone in its group fails the node only when its
// device is lost. Actors whose state outlives them are restarted within a budget, the others fail the node at once.
//
// It is the only package under actors that imports its siblings. It names no backend: the caller hands in the opener, and the
// bus.
package node
