// Package actors is the vocabulary that all actors of a node share: requests and what comes back for them, votes, plans and
// batches of a step, and the messages between gateway, scheduler and rank. Inside a node messages are these plain structs,
// passed by pointer or value and never changed after they were sent.
//
// The actors live in packages below and never import one another; actors/node, the composition root, starts them.
package actors
