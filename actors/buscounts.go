package actors

import "sync/atomic"

// BusCounts are the messages of the step protocol that a node has sent and taken since its start. Agents and coordinator count,
// any goroutine may read. The zero value is ready.
type BusCounts struct {
	Votes  atomic.Int64 // messages with a node's votes for a step, without copies
	Plans  atomic.Int64 // plans accepted
	Resent atomic.Int64 // copies of what was not answered in time, sent by this node
}

// AddTo adds the counts to s.
func (c *BusCounts) AddTo(s *BusStats) {
	s.Votes += c.Votes.Load()
	s.Plans += c.Plans.Load()
	s.Resent += c.Resent.Load()
}
