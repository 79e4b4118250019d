// Package scheduler serves the requests of one engine: it admits them, builds the batch of each step, votes, hands plan and
// batch to the rank, and turns tokens into text. The decisions are a pure core, without clock, actor or text; the actor is
// its shell, which detokenizes and matches stop strings.
//
// Admission is first come, first served and reserves the KV blocks of prompt and answer at once, so a running request never
// has to give any back. A step has one row for each request that generates, and prompt chunks with the rest of the token budget,
// so prompts never stop a running answer. The package knows no devices and no clients.
package scheduler
