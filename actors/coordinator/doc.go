// Package coordinator decides for all groups of a cluster: which node gets which devices, what a step is, and that an epoch is over.
// It owns no request, batch or tensor; it sees numbers of rows. One node of a cluster runs it.
//
//	in   Register; Ready, Votes, Wake, Done, Progress of every group
//	out  Registered; Call and Plan to all nodes of a group, a plan again to a node that lacks it
//
// A group is gathering until all its ranks have joined their communicators, then stepping: a plan for every step that all members
// have voted for, a Call after a park when somebody wakes it. It has ended when a rank failed, when the judge found one that makes no
// progress, or a vote did not come. Then the next epoch is told, without the lost engine and with the cause; nobody votes in it.
//
// Decisions are in pure cores (registry, group, judge). While all groups are parked no timer runs.
package coordinator
