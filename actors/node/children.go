package node

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/actors/agent"
	"github.com/moerack/moerack/actors/coordinator"
	"github.com/moerack/moerack/actors/expertgroup"
	"github.com/moerack/moerack/actors/gateway"
	"github.com/moerack/moerack/actors/scheduler"
)

func newSupervisor(n *Node) *supervisor { return &supervisor{node: n} }

// onStarted starts the coordinator, which answers registrations, this node's included.
func (s *supervisor) onStarted(ctx actor.Context) {
	n, o := s.node, s.node.opts
	if !o.Coordinate {
		return
	}
	s.coordinator = s.spawn(ctx, coordinator.Props(coordinator.Options{
		Node: o.Name, Space: n.space, Bus: o.Bus, Layout: o.Layout, Exchange: n.exchange, StallTimeout: o.StallTimeout, Counts: &n.counts, Logger: n.log,
	}), "coordinator")
}

// onPlaced starts the ranks.
func (s *supervisor) onPlaced(ctx actor.Context) {
	if s.phase != loading {
		return
	}
	n, local := s.node, s.node.opts.engines()
	for _, g := range n.opts.Layout.Groups() {
		mine := &group{layout: g, ranks: len(g.Engines) * n.opts.Layout.TensorParallel}
		for _, e := range g.Engines {
			if local.Has(e) {
				mine.engines = append(mine.engines, s.startEngine(ctx, e, mine))
			}
		}
		if len(mine.engines) > 0 {
			s.groups = append(s.groups, mine)
		}
	}
}

// startEngine starts the ranks of an engine.
func (s *supervisor) startEngine(ctx actor.Context, number int, g *group) *engine {
	e := &engine{number: number, group: g}
	from, to := s.node.opts.Layout.Ranks(number)
	for r := from; r < to; r++ {
		e.ranks = append(e.ranks, s.spawn(ctx, s.node.ranks[r-s.node.first].Props(), fmt.Sprintf("rank/%d", r)))
	}
	s.engines = append(s.engines, e)
	return e
}

// engineOf returns the engine of a rank.
func (s *supervisor) engineOf(rank int) *engine {
	return s.engines[rank/s.node.opts.Layout.TensorParallel-s.node.opts.engines().From]
}

// onRankReady starts the scheduler of an engine when all its ranks are ready, and what brings a group together when all of its
// engines here are.
func (s *supervisor) onRankReady(ctx actor.Context, m *actors.RankReady) {
	if s.phase != loading {
		return
	}
	n := s.node
	n.mu.Lock()
	n.facts[m.Rank-n.first] = m.Facts
	n.mu.Unlock()
	e := s.engineOf(m.Rank)
	if e.ready++; e.ready < len(e.ranks) {
		return
	}
	s.startScheduler(ctx, e)
	for _, other := range e.group.engines {
		if other.scheduler == nil {
			return
		}
	}
	s.startGroup(ctx, e.group)
}

// factsOf returns the facts of an engine's ranks.
func (n *Node) factsOf(e *engine) []actors.RankFacts {
	from, to := n.opts.Layout.Ranks(e.number)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.facts[from-n.first : to-n.first]
}

func (s *supervisor) startScheduler(ctx actor.Context, e *engine) {
	n := s.node
	from, _ := n.opts.Layout.Ranks(e.number)
	facts := n.factsOf(e)
	blocks, length := facts[0].KVBlocks, facts[0].ModelLen
	for _, f := range facts {
		blocks, length = min(blocks, f.KVBlocks), min(length, f.ModelLen)
	}
	ledger := scheduler.NewLedger(e.number, blocks)
	e.scheduler = s.spawn(ctx, scheduler.Props(scheduler.Options{
		Settings: scheduler.Settings{
			Engine: e.number, Epoch: epoch, GroupRanks: e.group.ranks, ModelLen: length, MaxNumBatchedTokens: n.opts.MaxNumBatchedTokens,
			MaxNumSeqs: n.opts.MaxNumSeqs, BlockSize: n.opts.BlockSize, KVBlocks: blocks, EOS: n.opts.Config.EOSTokenIDs,
		},
		Node: n.opts.Name, FirstRank: from, Ranks: slices.Clone(e.ranks), Agent: n.pid("agent/" + e.group.layout.Name), Ledger: ledger, Logger: n.log, NewText: n.newText(),
	}), fmt.Sprintf("scheduler/%d", e.number))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ledgers[e.number-n.opts.engines().From] = ledger
	if n.modelLen == 0 || length < n.modelLen {
		n.modelLen = length
	}
}

// startGroup starts the node's voice in a group, and what joins its ranks; the voice first, so that it hears the first Call.
func (s *supervisor) startGroup(ctx actor.Context, g *group) {
	n := s.node
	experts := n.pid("expertgroup/" + g.layout.Name)
	var engines []agent.Engine
	var ranks []agent.Rank
	var members []expertgroup.Rank
	for _, e := range g.engines {
		engines = append(engines, agent.Engine{Engine: e.number, Scheduler: e.scheduler})
		from, _ := n.opts.Layout.Ranks(e.number)
		for i, f := range n.factsOf(e) {
			ranks = append(ranks, agent.Rank{Rank: from + i, Progress: f.Progress})
			members = append(members, expertgroup.Rank{Rank: from + i, PID: e.ranks[i]})
		}
	}
	g.agent = s.spawn(ctx, agent.Props(agent.Options{
		Node: n.opts.Name, Group: g.layout.Name, Space: n.space, Bus: n.opts.Bus, Engines: engines, Ranks: ranks, ExpertGroup: experts,
		StallTimeout: n.opts.StallTimeout, Counts: &n.counts, Logger: n.log,
	}), "agent/"+g.layout.Name)
	g.experts = s.spawn(ctx, expertgroup.Props(expertgroup.Options{
		Space: n.space, Bus: n.opts.Bus, Group: g.layout, Layout: n.opts.Layout, Epoch: epoch, Node: n.opts.Name, Nodes: n.nodes, Ranks: members, Logger: n.log,
	}), "expertgroup/"+g.layout.Name)
}

// onGroupUp opens the gateway when all groups are up.
func (s *supervisor) onGroupUp(ctx actor.Context, m *actors.GroupUp) {
	if s.phase != loading {
		return
	}
	var waiting []string
	for _, g := range s.groups {
		g.up = g.up || g.layout.Name == m.Group
		if !g.up {
			waiting = append(waiting, g.layout.Name)
		}
	}
	n := s.node
	n.mu.Lock()
	n.groups = waiting
	n.mu.Unlock()
	if len(waiting) > 0 {
		return
	}
	var schedulers []*actor.PID
	for _, e := range s.engines {
		schedulers = append(schedulers, e.scheduler)
	}
	s.gateway = s.spawn(ctx, gateway.Props(gateway.Options{First: n.opts.engines().From, Engines: schedulers, Logger: n.log}), "gateway")
	s.become(serving)
	s.onLookForBus(ctx)
	n.ready(s.gateway)
}
