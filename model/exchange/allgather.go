package exchange

import (
	"context"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/nn"
)

// AllGather is the exchange that works on every backend: each rank gets all rows of the group with their routing and
// serves those of its experts. The way back is counted on both sides from the routing, so no size is exchanged: a rank
// sends the rows of each home rank in the order of that rank's (row, slot) pairs, and the home rank expects from each the pairs
// whose expert is there, in the same order.
//
// Memory is made once for the worst case, all pairs that can meet on one rank: with N = Arriving(R) rows, about 4·H·(2·N + P·R + R·K)
// bytes beside the width of the experts, where N = P·R·min(K, E). It grows with the number of ranks.
type AllGather struct {
	buffers
	comm hal.Comm
	all  hal.Tensor // (P·R, H) rows of the group
	ids  hal.Tensor // (P·R, K) I32 their experts
	send hal.Tensor // (M, H) results by home rank
	pick hal.Tensor // (1, M) I32 which of rows goes where in send
	back hal.Tensor // (R·K, H) results of the own rows, by the rank they come from
	home hal.Tensor // (R, K) I32 of back
	host counting
}

// counting is the host's side: what goes where.
type counting struct {
	ids        []int32 // (R·K) of the own rows
	index      []int32 // (P·R·K) of rows, for all pairs of the group
	pick       []int32 // (M)
	home       []int32 // (R·K)
	send, recv []int   // (P) rows to and from each rank
	next       []int   // (P)
}

// NewAllGather makes the buffers. The communicator is given by Join.
func NewAllGather(a *nn.Allocator, s Sizes) *AllGather {
	arriving, pairs := s.Arriving(s.Rows), s.Rows*s.PerToken
	g := &AllGather{
		buffers: newBuffers(a, s),
		all:     a.F32(s.Ranks*s.Rows, s.Hidden),
		ids:     a.I32(s.Ranks*s.Rows, s.PerToken),
		send:    a.F32(arriving, s.Hidden),
		pick:    a.I32(1, arriving),
		back:    a.F32(pairs, s.Hidden),
		home:    a.I32(s.Rows, s.PerToken),
	}
	if a.Device != nil {
		g.host = counting{
			ids: make([]int32, pairs), index: make([]int32, s.Ranks*pairs), pick: make([]int32, 0, arriving), home: make([]int32, pairs),
			send: make([]int, s.Ranks), recv: make([]int, s.Ranks), next: make([]int, s.Ranks),
		}
	}
	return g
}

// Join gives the communicator of the ranks that share the experts. It stays the caller's.
func (g *AllGather) Join(c hal.Comm) { g.comm = c }

// A2E gathers rows and routing of all ranks and sorts the pairs of this rank's experts.
func (g *AllGather) A2E(ctx context.Context, st hal.Stream, x, ids hal.Tensor) (Visit, error) {
	s, n := g.sizes, x.Rows
	all, allIDs := g.all.Slice(0, s.Ranks*n), g.ids.Slice(0, s.Ranks*n)
	g.comm.AllGather(st, all, x)
	g.comm.AllGather(st, allIDs, ids)
	v := Visit{
		Rows:   g.rows.Slice(0, s.Arriving(n)),
		Counts: g.counts,
		Sent:   rowBytes(n, s.Hidden) * int64(s.Ranks-1),
		rows:   n,
	}
	index := g.index.Slice(0, s.Ranks*n)
	st.Dispatch(v.Rows, index, v.Counts, all, allIDs, s.Rank*s.Local())
	st.GetInt32(g.host.ids[:n*s.PerToken], ids)
	st.GetInt32(g.host.index[:s.Ranks*n*s.PerToken], index)
	if err := st.Synchronize(ctx); err != nil {
		return Visit{}, err
	}
	g.host.count(s, n)
	return v, nil
}

// E2A sends every result to the rank that brought its row.
func (g *AllGather) E2A(_ context.Context, st hal.Stream, v Visit) (Home, error) {
	s, h := g.sizes, &g.host
	picked, pairs := len(h.pick), v.rows*s.PerToken
	send := g.send.Slice(0, picked)
	if picked > 0 {
		pick := g.pick.Columns(0, picked)
		st.PutInt32(pick, h.pick)
		st.GatherRows(send, v.Rows, pick)
	}
	back, home := g.back.Slice(0, pairs), g.home.Slice(0, v.rows)
	g.comm.AllToAllV(st, back, h.recv, send, h.send)
	st.PutInt32(home, h.home[:pairs])
	return Home{Rows: back, Index: home, Sent: rowBytes(picked-h.send[s.Rank], s.Hidden)}, nil
}

// count says where the results of n rows of each rank go, and where those of the own rows come from.
func (h *counting) count(s Sizes, n int) {
	pairs := n * s.PerToken
	h.pick = h.pick[:0]
	for p := range s.Ranks {
		before := len(h.pick)
		for _, i := range h.index[p*pairs : (p+1)*pairs] {
			if i >= 0 {
				h.pick = append(h.pick, i)
			}
		}
		h.send[p] = len(h.pick) - before
	}
	clear(h.recv)
	for _, e := range h.ids[:pairs] {
		if e >= 0 {
			h.recv[s.at(e)]++
		}
	}
	from := 0
	for p, rows := range h.recv {
		h.next[p] = from
		from += rows
	}
	for i, e := range h.ids[:pairs] {
		h.home[i] = -1
		if e >= 0 {
			p := s.at(e)
			h.home[i] = int32(h.next[p])
			h.next[p]++
		}
	}
}
