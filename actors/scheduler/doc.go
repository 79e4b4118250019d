// Package scheduler serves the requests of one engine: it admits them, builds the batch of each step, votes, hands plan and
// batch to the engine's ranks, and turns tokens into text. The decisions are a pure core, without clock, actor or text; the actor is
// its shell, which detokenizes and matches stop strings.
//
// It votes one step ahead: while step n−1 runs, batch n is built, with placeholders for the tokens that n−1 chooses, and voted for once
// n−2 is behind. The vote binds: a request that ends meanwhile keeps its rows, which count as padding, and one that arrives waits
// for n+1. Lengths are known ahead, so only EOS, stop strings and aborts waste rows.
//
// Admission is first come, first served and reserves the KV blocks of prompt and answer at once, so a running request never
// has to give any back. A step has one row for each request that generates, and prompt chunks with the rest of the token budget,
// so prompts never stop a running answer. The package knows no devices and no clients, and makes no plans.
package scheduler
