// Package expertgroup brings the ranks of a node that belong to one group into the group's communicators. One actor serves one
// group and one epoch. It tells the other nodes how its ranks can be reached and collects what they tell, so that devices find
// each other without addresses in any configuration; it reports to the coordinator that its ranks have joined, or why one has
// not; and it aborts the communicators when the epoch is over.
//
//	joining ──all joined──▶ joined ──first plan──▶ up
//	   │                      │                     │
//	   └─a rank could not─▶ failed                  │
//	                          └─────epoch over──────┴──▶ aborted
//
// Any phase goes to aborted when the epoch is over. Messages of another epoch are ignored. What is sent over the bus is repeated
// until it is no longer needed, because the bus may lose it.
//
// It is never in the path of a token: communicators belong to the ranks, which run and close them. It plans nothing and judges
// nobody.
package expertgroup
