package scheduler

import (
	"sync"

	"github.com/moerack/moerack/actors"
	"github.com/moerack/moerack/topology"
)

// Ledger holds an engine's counts. It outlives restarts of the scheduler. Anyone may read it; the scheduler writes before it
// tells a client, so that who has seen the end of an answer finds it counted.
type Ledger struct {
	mu        sync.Mutex // guards the fields below
	engine    actors.EngineStats
	prompt    int64
	generated int64
	exchange  actors.ExchangeSteps
	stages    actors.StageSteps
	bytes     actors.BytesMoved
}

// NewLedger makes the ledger of an engine with a number of KV blocks, all free.
func NewLedger(engine, kvBlocks int) *Ledger {
	return &Ledger{engine: actors.EngineStats{Engine: engine, KVBlocks: kvBlocks, KVBlocksFree: kvBlocks}}
}

// AddTo adds the engine's counts to a node's. Tokens and bytes add up. Steps do not, as engines of a group run the same ones: of
// steps, of each exchange and of each number of stages the node has the largest count of an engine.
func (l *Ledger) AddTo(s *actors.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Engines = append(s.Engines, l.engine)
	s.Steps = max(s.Steps, l.engine.Steps)
	s.PromptTokens += l.prompt
	s.GeneratedTokens += l.generated
	s.ExchangeSteps.Local = max(s.ExchangeSteps.Local, l.exchange.Local)
	s.ExchangeSteps.AllGather = max(s.ExchangeSteps.AllGather, l.exchange.AllGather)
	s.StageSteps.One = max(s.StageSteps.One, l.stages.One)
	s.Bytes.A2E += l.bytes.A2E
	s.Bytes.E2A += l.bytes.E2A
	s.Bytes.TP += l.bytes.TP
}

// stepRun counts a step that all ranks of the engine ran, as its plan says, and what it brought. Rows beside the real ones are
// padding, those of requests that ended after their vote too.
func (l *Ledger) stepRun(f *flight, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.Steps++
	switch f.plan.Exchange {
	case topology.Local:
		l.exchange.Local++
	case topology.AllGather:
		l.exchange.AllGather++
	}
	if f.plan.Stages == 1 {
		l.stages.One++
	}
	if o.rows == 0 {
		l.engine.DummySteps++
	}
	l.engine.RealTokens += int64(o.rows)
	l.engine.PaddedTokens += int64(f.plan.PadTo - o.rows)
	l.engine.ExpandedTokens += int64(f.expanded)
	l.prompt += int64(o.prompt)
	l.generated += int64(o.generated)
	l.bytes.A2E += f.sent.A2E
	l.bytes.E2A += f.sent.E2A
	l.bytes.TP += f.sent.TP
}

func (l *Ledger) kvFree(blocks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.KVBlocksFree = blocks
}
